package generate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/labs/internal/finding"
)

// A repository of some kilobytes can have links to one large file by the thousand.
func TestTheCopyOfAModuleHasALimit(t *testing.T) {
	from := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(from, "go.mod"), []byte("module x\n"), 0o600), os.WriteFile(filepath.Join(from, "data"), make([]byte, 1<<20), 0o600))
	for i := range 3 {
		err = errors.Join(err, os.Symlink("data", filepath.Join(from, fmt.Sprint("link-", i))))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		limits limits
		ok     bool
	}{"enough": {limits{10, 5 << 20}, true}, "too many bytes": {limits{10, 3 << 20}, false}, "too many files": {limits{4, 5 << 20}, false}} {
		err := tc.limits.copyModule(from, filepath.Join(t.TempDir(), "copy"))
		if f, ok := errors.AsType[*finding.Finding](err); ok == tc.ok || ok && f.Cause != CauseFailed || !ok && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Graded code is read where there is nothing but the copy.
func TestReplacesWithinTheModuleLeadToTheCopy(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	err := os.Mkdir(filepath.Join(from, "shared"), 0o755)
	for name, text := range map[string]string{
		"go.mod":        "module x\n\nreplace (\n\tshared => ./shared\n\tmissing => ./missing\n\tbeside => ../shared\n)\n",
		"shared/go.mod": "module shared\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(from, name), []byte(text), 0o600))
	}
	if err = errors.Join(err, copyModule(from, to)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(to, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range mod.Replace {
		got[r.Old.Path] = r.New.Path
	}
	want := map[string]string{"shared": "./shared", "missing": filepath.Join(from, "missing"), "beside": filepath.Join(filepath.Dir(from), "shared")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("where replace directives lead (-want +got):\n%s", diff)
	}
}
