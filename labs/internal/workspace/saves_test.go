package workspace

import (
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
)

func TestOldestSavesAreRemoved(t *testing.T) {
	s := saves{dir: t.TempDir(), most: 2}
	for i, wantRemoved := range []int{0, 0, 1, 1} {
		number, removed, err := s.write(course.Tree{"a": {Mode: 0o644}, "b/c": {Mode: 0o644}}, "before")
		if err != nil || number != i+1 || removed != wantRemoved {
			t.Errorf("save %d, %d removed, %v, want save %d, %d removed", number, removed, err, i+1, wantRemoved)
		}
	}
	list, err := s.list()
	if err != nil || len(list) != 2 || list[0].Number != 3 || list[1].Number != 4 {
		t.Errorf("left are %v, %v", list, err)
	}
}

func TestSaveOfKilledCommandIsRemoved(t *testing.T) {
	s := saves{dir: t.TempDir(), most: 2}
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
