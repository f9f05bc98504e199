package workspace

import (
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
)

func TestSaveOfKilledCommandIsRemoved(t *testing.T) {
	s := saves{t.TempDir()}
	half, want := course.Tree{"half": {Mode: 0o644}}, course.Tree{"whole": {Mode: 0o644}}
	if err := half.WriteTo(filepath.Join(s.dir, "half")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write(want, "before"); err != nil {
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
