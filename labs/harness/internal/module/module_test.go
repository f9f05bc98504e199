package module_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/example/operator-lab/labs/harness/internal/module"
)

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"go.mod", "main.go", "main_test.go", "api/v1/types.go", "api/v1/README.md",
		"vendor/a/a.go", "testdata/b.go", ".hidden/c.go", "_old/d.go", "tools/go.mod", "tools/e.go",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("// "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "device.go")); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := module.Walk(dir, func(pkg string, text []byte) error {
		got = append(got, pkg+" "+string(text))
		return nil
	})
	if want := []string{"api/v1 // api/v1/types.go", ". // main.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Walk visits %q, %v; want %q", got, err, want)
	}
}
