package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
)

// What is too large to be read again is not written, and leaves nothing behind.
func TestASaveHasALimit(t *testing.T) {
	r := repoOf(t.TempDir())
	folder := r.path("lab", "saves")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	tree := course.Tree{"a": {Data: make([]byte, 10000), Mode: 0o644}}
	name, err := r.write(tree, "before")
	if err != nil {
		t.Fatal(err)
	}
	if back, err := r.read(name); err != nil || tree.Diff(back) != nil {
		t.Errorf("%v, %v", back, err)
	}
	r.mostOfASave = 10000
	if _, err := r.read(name); err == nil || !strings.Contains(err.Error(), "more than 10000 bytes") {
		t.Errorf("read: %v", err)
	}
	if _, err := r.write(tree, "before"); err == nil || !strings.Contains(err.Error(), "save your work: it is more than 10000 bytes") {
		t.Errorf("write: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) != 1 {
		t.Errorf("left: %q, %v", left, err)
	}
}
