package workspace

import (
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
)

// The latest save stays, whatever it has.
func TestOldestSavesAreRemoved(t *testing.T) {
	s := saves{dir: t.TempDir(), most: 100}
	for i, step := range []struct{ size, removed, left int }{{40, 0, 1}, {40, 0, 2}, {40, 1, 2}, {10, 0, 3}, {200, 3, 1}, {1, 1, 1}} {
		tree := course.Tree{"a": {Data: make([]byte, step.size/2), Mode: 0o644}, "b/c": {Data: make([]byte, step.size-step.size/2), Mode: 0o644}}
		number, removed, err := s.write(tree, "before")
		if err != nil || number != i+1 || removed != step.removed {
			t.Errorf("step %d: save %d, %d removed, %v", i, number, removed, err)
		}
		list, err := s.list()
		if err != nil || len(list) != step.left || list[len(list)-1].Number != number {
			t.Errorf("step %d: left are %v, %v", i, list, err)
		}
	}
}

func TestSaveOfKilledCommandIsRemoved(t *testing.T) {
	s := saves{dir: t.TempDir(), most: 100}
	half, want := course.Tree{"half": {Mode: 0o644}}, course.Tree{"whole": {Mode: 0o644}}
	if err := half.WriteTo(filepath.Join(s.dir, "half")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.write(want, "before"); err != nil {
		t.Fatal(err)
	}
	save, err := s.find("1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := course.ReadTree(save.dir); err != nil || want.Diff(got) != nil {
		t.Errorf("%v, %v", got.Paths(), err)
	}
}
