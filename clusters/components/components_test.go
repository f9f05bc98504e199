package components

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

// checkout is where this test's own checkout begins.
const checkout = "../.."

func TestProgramNameFollowsGoBuild(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3":                     "server",
		"github.com/coredns/coredns":                    "coredns",
		"github.com/containerd/containerd/v2/cmd/ctr":   "ctr",
		"github.com/containerd/containerd/v2/cmd/v2run": "v2run",
	} {
		if got := programName(pkg); got != want {
			t.Errorf("programName(%q) = %q, want %q", pkg, got, want)
		}
	}
}

func TestVersionComesFromTheNestedModule(t *testing.T) {
	got, err := Version(checkout, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "v3.") {
		t.Errorf("Version(etcd) = %q, want the version of go.etcd.io/etcd/server/v3", got)
	}
	if _, err := Version(checkout, "moon"); err == nil {
		t.Error("Version(moon) returned no error")
	}
}

func TestKubernetesProgramsKnowTheirVersion(t *testing.T) {
	version, err := Version(checkout, "kubeadm")
	if err != nil {
		t.Fatal(err)
	}
	flags := modules()[0].linkerFlags(checkout)
	for _, want := range []string{".gitVersion=" + version, ".gitMajor=1", ".gitMinor=" + strings.Split(version, ".")[1]} {
		if !strings.Contains(flags+" ", want+" ") {
			t.Errorf("linker flags %q lack %q", flags, want)
		}
	}
}

func TestDigestChangesWithAModuleFile(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "clusters", "components"), os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	before := digest(t, root)
	sums := filepath.Join(root, "clusters", "components", "coredns", "go.sum")
	if err := os.WriteFile(sums, []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if digest(t, root) == before {
		t.Error("the digest did not change with coredns/go.sum")
	}
}

func digest(t *testing.T, root string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Digest(root, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// go mod tidy drops what no tool directive asks for, and go vet cannot see these programs.
func TestEveryProgramIsAToolOfItsModule(t *testing.T) {
	for _, m := range modules() {
		if m.dir == "." {
			continue
		}
		data, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := modfile.Parse("go.mod", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		var tools []string
		for _, tool := range file.Tool {
			tools = append(tools, tool.Path)
		}
		slices.Sort(tools)
		if diff := cmp.Diff(slices.Sorted(maps.Values(m.packages)), tools); diff != "" {
			t.Errorf("%s/go.mod: programs (-) and tools (+) differ:\n%s", m.dir, diff)
		}
	}
}

func TestUnknownComponentIsNamed(t *testing.T) {
	_, err := (&Builder{Root: checkout, CacheDir: t.TempDir()}).Build(t.Context(), "pause", "moon")
	if err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("error %v does not name moon", err)
	}
}

func TestBuildsOnceAndThenAnswersFromTheCache(t *testing.T) {
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	b := &Builder{Root: root, CacheDir: t.TempDir(), Log: func(l string) { lines = append(lines, l) }}
	for range 2 {
		paths, err := b.Build(t.Context(), "pause")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(paths["pause"]); err != nil || info.Mode()&0o111 == 0 {
			t.Fatalf("no program at %q: %v", paths["pause"], err)
		}
	}
	if len(lines) != 1 {
		t.Errorf("built %d times, want once: %q", len(lines), lines)
	}
}
