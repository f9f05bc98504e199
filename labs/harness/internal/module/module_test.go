package module_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/harness/internal/module"
)

func TestWalkVisitsModuleAndLocalReplacements(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"main.go", "main_test.go", "api/go.mod", "api/v1/types.go", "api/v1/README.md",
		"vendor/a/a.go", "testdata/b.go", ".hidden/c.go", "_old/d.go", "tools/go.mod", "tools/e.go",
	} {
		write(t, filepath.Join(dir, name), "// "+name)
	}
	write(t, filepath.Join(dir, "go.mod"), "module x\n\nreplace (\n\tx/api => ./api\n\tmissing => ./missing\n\tbeside => ../beside\n)\n")
	var got []string
	err := module.Walk(dir, func(pkg module.Package, text []byte) {
		got = append(got, pkg.Folder+" "+pkg.Import+" "+string(text))
	})
	if want := []string{". x // main.go", "api/v1 x/api/v1 // api/v1/types.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Walk = %v, visits %q; want %q", err, got, want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestComplaintNamesCauseAndRemedy(t *testing.T) {
	stale := "Error: go: inconsistent vendoring in /w:\n" + strings.Repeat("\tk8s.io/api: is explicitly required\n", 50) +
		"\tTo sync the vendor directory, run:\n\t\tgo mod vendor\n\nUsage:\n  controller-gen [flags]\n"
	for name, c := range map[string]struct{ output, first, last string }{
		"a stale vendor folder": {stale, "Error: go: inconsistent vendoring", "go mod vendor"},
		"places":                {"# x/api\nnote\n/w/b.go:2: no\n./a.go:1: no\n/w/b.go:2: no\n", "a.go:1: no", "b.go:2: no"},
	} {
		t.Run(name, func(t *testing.T) {
			got := module.Complaint(c.output, "/w")
			if !strings.HasPrefix(got, c.first) || !strings.HasSuffix(got, c.last) || strings.Count(got, "\n") > 5 {
				t.Errorf("Complaint = %q", got)
			}
		})
	}
}
