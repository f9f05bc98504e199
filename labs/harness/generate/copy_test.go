package generate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
