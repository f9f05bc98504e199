package components

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestComponentsAreToolsOfModules(t *testing.T) {
	all := components()
	for name, want := range map[string]component{
		"kubelet": {module: "kubernetes", pkg: "k8s.io/kubernetes/cmd/kubelet"},
		"etcd":    {module: "etcd", pkg: "go.etcd.io/etcd/server/v3"},
		"ptp":     {module: "cni", pkg: "github.com/containernetworking/plugins/plugins/main/ptp"},
	} {
		if got := (component{module: all[name].module, pkg: all[name].pkg}); got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	for name := range all {
		if v := Version(name); (v == "") != (name == "pause") || v != "" && !strings.HasPrefix(v, "v") {
			t.Errorf("%s has the version %q", name, v)
		}
	}
}

func TestKubernetesProgramsKnowTheirVersion(t *testing.T) {
	version, flags := Version("kubeadm"), components()["kubeadm"].flags
	for _, want := range []string{".gitVersion=" + version, ".gitMajor=1", ".gitMinor=" + strings.Split(version, ".")[1]} {
		if !strings.Contains(flags+" ", want+" ") {
			t.Errorf("linker flags %q lack %q", flags, want)
		}
	}
}

func TestDigestChangesWithSources(t *testing.T) {
	for name, file := range map[string]string{"ctr": "modules/containerd.mod", "kwok": "modules/kwok.sum", "pause": "pause/main.go"} {
		data, err := os.ReadFile(file)
		var digest strings.Builder
		if Digest(&digest, name); err != nil || !strings.Contains(digest.String(), fmt.Sprintf("%x", sha256.Sum256(data))) {
			t.Errorf("the digest of %s does not contain that of %s (%v)", name, file, err)
		}
	}
}

// newBuilder returns a builder of an empty cache and what it logs.
func newBuilder(t *testing.T) (b *Builder, lines *[]string) {
	t.Helper()
	lines = new([]string)
	return &Builder{CacheDir: t.TempDir(), Log: func(line string) { *lines = append(*lines, line) }}, lines
}

func TestBuildAnswersFromTheCache(t *testing.T) {
	b, lines := newBuilder(t)
	for range 2 {
		paths, err := b.Build(t.Context(), "pause")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(paths["pause"]); err != nil || info.Mode()&0o111 == 0 {
			t.Fatalf("no program at %q: %v", paths["pause"], err)
		}
	}
	if len(*lines) != 1 {
		t.Errorf("built %d times, want once: %q", len(*lines), *lines)
	}
}

func TestBuildRejectsUnknownComponents(t *testing.T) {
	if _, err := (&Builder{CacheDir: t.TempDir()}).Build(t.Context(), "moon"); err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("error %v does not name moon", err)
	}
}

func TestBuildPrunesTheCache(t *testing.T) {
	b, _ := newBuilder(t)
	used, _ := b.places(components()["etcd"])
	for folder, days := range map[string]int{filepath.Base(filepath.Dir(used)): 31, "etcd-old": 31, "etcd-new": 29, "building": 31} {
		dir := filepath.Join(b.CacheDir, "components", folder)
		then := time.Now().AddDate(0, 0, -days)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o755), os.Chtimes(dir, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Build(t.Context(), "etcd"); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(b.CacheDir, "components", "*", "etcd"))
	want := []string{used, filepath.Join(b.CacheDir, "components", "etcd-new", "etcd")}
	slices.Sort(want)
	if diff := cmp.Diff(want, kept); err != nil || diff != "" {
		t.Errorf("%v, want (-) and kept (+):\n%s", err, diff)
	}
}

// released answers with the content that each URL has.
type released map[string]string

func (r released) RoundTrip(req *http.Request) (*http.Response, error) {
	content, found := r[req.URL.String()]
	if !found {
		return &http.Response{Status: "404 Not Found", StatusCode: http.StatusNotFound, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(content))}, nil
}

func TestBuildDownloadsWhatHasItsSum(t *testing.T) {
	url := "https://dl.k8s.io/release/" + Version("kubectl") + "/bin/linux/" + runtime.GOARCH + "/kubectl"
	sum := fmt.Sprintf("%x\n", sha256.Sum256([]byte("a program")))
	t.Setenv("PATH", "") // nothing can be compiled
	b, _ := newBuilder(t)
	b.Download, b.transport = true, released{url: "a program", url + ".sha256": sum}
	paths, err := b.Build(t.Context(), "kubectl")
	if data, readErr := os.ReadFile(paths["kubectl"]); err != nil || readErr != nil || string(data) != "a program" {
		t.Fatalf("kubectl is %q (%v, %v)", data, err, readErr)
	}
	if len(b.Missing("kubectl")) != 0 || len((&Builder{CacheDir: b.CacheDir}).Missing("kubectl")) != 1 {
		t.Error("the download is not in the cache, or is taken for a node image, which is made from source")
	}
	for what, upstream := range map[string]released{
		"SHA-256": {url: "damaged", url + ".sha256": sum}, "404": {url: "a program"}, "not the published <html>": {url: "a program", url + ".sha256": "<html>"},
	} {
		b, lines := newBuilder(t)
		b.Download, b.transport = true, upstream
		if _, err := b.Build(t.Context(), "kubectl"); err == nil || !strings.Contains(strings.Join(*lines, "\n"), what) {
			t.Errorf("it was built (%v), or the log does not say %q: %q", err, what, *lines)
		}
	}
}
