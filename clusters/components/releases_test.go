package components

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// published is a server with the layout of both projects' releases, and a checkout whose modules have nothing to compile:
// what is not downloaded is an error.
func published(t *testing.T, change func(files map[string][]byte)) (b *Builder, lines *[]string) {
	t.Helper()
	root := t.TempDir()
	for _, m := range []struct{ dir, module, version string }{
		{"kubernetes", "k8s.io/kubernetes", "v1.99.0"}, {"etcd", "go.etcd.io/etcd/server/v3", "v3.99.0"},
	} {
		dir := filepath.Join(root, "clusters", "components", m.dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("module example.org/%s\n\nrequire %s %s\n", m.dir, m.module, m.version)
		for name, text := range map[string]string{"go.mod": text, "go.sum": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	scheduler, folder := "/v1.99.0/bin/linux/"+arch+"/kube-scheduler", "etcd-v3.99.0-linux-"+arch
	archive := "/v3.99.0/" + folder + ".tar.gz"
	files := map[string][]byte{scheduler: []byte("a scheduler"), archive: packed(t, folder+"/README.md", folder+"/etcd")}
	files[scheduler+".sha256"] = fmt.Appendf(nil, "%x", sha256.Sum256(files[scheduler]))
	files["/v3.99.0/SHA256SUMS"] = fmt.Appendf(nil, "%x  another\n%x  %s.tar.gz\n", sha256.Sum256(nil), sha256.Sum256(files[archive]), folder)
	change(files)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, found := files[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	lines = new([]string)
	return &Builder{
		Root: root, CacheDir: t.TempDir(), Releases: &Releases{Kubernetes: server.URL, Etcd: server.URL},
		Log: func(line string) { *lines = append(*lines, line) },
	}, lines
}

// packed is a .tar.gz in which each file contains its own name.
func packed(t *testing.T, names ...string) []byte {
	t.Helper()
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	files := tar.NewWriter(zipped)
	for _, name := range names {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []interface{ Close() error }{files, zipped} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return data.Bytes()
}

func TestProgramsAreTakenFromReleases(t *testing.T) {
	b, lines := published(t, func(map[string][]byte) {})
	for range 2 { // from the cache, the second time
		paths, err := b.Build(t.Context(), "kube-scheduler", "etcd")
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"kube-scheduler": "a scheduler", "etcd": "etcd-v3.99.0-linux-" + arch + "/etcd"} {
			data, err := os.ReadFile(paths[name])
			info, statErr := os.Stat(paths[name])
			if err != nil || statErr != nil || string(data) != want || info.Mode()&0o111 == 0 {
				t.Errorf("%s is %q (%v, %v)", name, data, err, statErr)
			}
		}
	}
	if len(*lines) != 2 {
		t.Errorf("downloaded more than once: %q", *lines)
	}
	b.Releases = nil // as for a node image, which is made from source
	if missing, err := b.Missing(t.Context(), "kube-scheduler"); err != nil || len(missing) != 1 {
		t.Errorf("missing for a node image: %v, %v", missing, err)
	}
}

// Whatever is wrong with a download, the program is compiled: here that fails, because there is nothing to compile.
func TestADownloadThatIsNotAsPublishedIsNotKept(t *testing.T) {
	scheduler := "/v1.99.0/bin/linux/" + arch + "/kube-scheduler"
	for name, tc := range map[string]struct {
		change func(files map[string][]byte)
		want   string
	}{
		"damaged":                 {func(f map[string][]byte) { f[scheduler] = []byte("a schedule") }, "SHA-256 sum"},
		"without a sum":           {func(f map[string][]byte) { delete(f, scheduler+".sha256") }, "404"},
		"with a sum that is none": {func(f map[string][]byte) { f[scheduler+".sha256"] = []byte("<html>") }, "no SHA-256 sum"},
		"not there":               {func(f map[string][]byte) { delete(f, scheduler) }, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			b, lines := published(t, tc.change)
			if _, err := b.Build(t.Context(), "kube-scheduler"); err == nil || !strings.Contains(err.Error(), "run go build") {
				t.Errorf("it was not compiled: %v", err)
			}
			if all := strings.Join(*lines, "\n"); !strings.Contains(all, "compiling kube-scheduler instead: ") || !strings.Contains(all, tc.want) {
				t.Errorf("the log does not say %q:\n%s", tc.want, all)
			}
			if kept, err := filepath.Glob(filepath.Join(b.CacheDir, "components", "*", "*")); err != nil || len(kept) > 0 {
				t.Errorf("kept: %v, %v", kept, err)
			}
		})
	}
	t.Run("an archive without the program", func(t *testing.T) {
		b, lines := published(t, func(f map[string][]byte) {
			for name := range f {
				if strings.HasSuffix(name, ".tar.gz") {
					f[name] = packed(t, "README.md")
					f["/v3.99.0/SHA256SUMS"] = fmt.Appendf(nil, "%x", sha256.Sum256(f[name]))
				}
			}
		})
		if _, err := b.Build(t.Context(), "etcd"); err == nil || !strings.Contains(strings.Join(*lines, "\n"), "unpack") {
			t.Errorf("%v: %q", err, *lines)
		}
	})
	t.Run("nobody answers", func(t *testing.T) {
		b, lines := published(t, func(map[string][]byte) {})
		b.Releases.Kubernetes = "http://127.0.0.1:1"
		if _, err := b.Build(t.Context(), "kube-scheduler"); err == nil || !strings.Contains(strings.Join(*lines, "\n"), "compiling kube-scheduler instead") {
			t.Errorf("%v: %q", err, *lines)
		}
	})
}
