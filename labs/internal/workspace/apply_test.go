package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
)

// An editor that saves while lab changes the workspace must not lose what it
// saved: apply only touches files that are still what was read and saved.
func TestApplyDoesNotTouchWhatChangedMeanwhile(t *testing.T) {
	have := course.Tree{
		"a": {Data: []byte("a"), Mode: 0o644},
		"b": {Data: []byte("b"), Mode: 0o644},
		"c": {Data: []byte("c"), Mode: 0o644},
	}
	want := course.Tree{
		"a": {Data: []byte("new a"), Mode: 0o644},
		"d": {Data: []byte("d"), Mode: 0o755},
	}
	dir := t.TempDir()
	if err := have.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("saved by an editor"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := apply(root, have, want); err == nil || !strings.Contains(err.Error(), "b was changed by somebody else") {
		t.Fatalf("%v", err)
	}
	now, err := course.ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	have["b"] = course.File{Data: []byte("saved by an editor"), Mode: 0o644}
	if diff := have.Diff(now); diff != nil {
		t.Errorf("differ: %q", diff)
	}
}
