package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/workspace"
)

// What people do to a folder of theirs, and its saves are there all the same.
func TestSavesOutliveWhatHappensToTheWorkspace(t *testing.T) {
	for name, happens := range map[string]func(b *fixture){
		"nothing":                     func(*fixture) {},
		"its repository is gone":      func(b *fixture) { b.remove(".git") },
		"its repository is a new one": func(b *fixture) { b.remove(".git"); b.git("init", "--quiet") },
		"its go.mod is gone":          func(b *fixture) { b.remove("go.mod") },
		"it is gone":                  func(b *fixture) { b.remove(".") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkspace(t)
			b.write("notes", "mine")
			mine := b.tree()
			b.solve(1)
			happens(b)
			b.undo()
			b.mustEqual(mine)
		})
	}
}

// A clone of one's own project, and a folder that was copied, are workspaces like the first, with saves of their own.
func TestCopiesAreWorkspaces(t *testing.T) {
	for name, copied := range map[string]func(b *fixture, to string){
		"a clone": func(b *fixture, to string) { b.git("clone", "--quiet", b.dir, to) },
		"a copy": func(b *fixture, to string) {
			if err := os.CopyFS(to, os.DirFS(b.dir)); err != nil {
				b.Fatal(err)
			}
		},
		"one that was handed out": func(b *fixture, to string) {
			starter, err := workspace.Starter(b.Context(), b.course)
			if err == nil {
				err = starter.WriteTo(to)
			}
			if err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := newWorkspace(t)
			second := &fixture{T: t, course: first.course, dir: filepath.Join(t.TempDir(), "mine")}
			copied(first, second.dir)
			second.mustEqual(first.stage(0))
			if status := second.git("status", "--porcelain"); status != "" {
				t.Errorf("its repository sees changes:\n%s", status)
			}
			second.write("notes", "mine")
			second.comesBack(2)
			if saves, err := workspace.Saves(first.course, first.dir); err != nil || len(saves) > 0 {
				t.Errorf("of the first one: %v, %v", saves, err)
			}
		})
	}
}

func TestSavesAreNumbered(t *testing.T) {
	b := newWorkspace(t)
	for range 6 {
		b.solve(1)
		b.solve(2)
	}
	saves, err := workspace.Saves(b.course, b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, s := range saves {
		numbers = append(numbers, s.Number)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, numbers); diff != "" {
		t.Error(diff)
	}
}

func TestNothingChangesWhenTheWorkCannotBeSaved(t *testing.T) {
	b := newWorkspace(t)
	saves := &fixture{T: t, dir: filepath.Join(b.course.Root, ".lab", "saves")}
	saves.remove(".")
	saves.dir = filepath.Dir(saves.dir)
	saves.write("saves", "a file")
	mine := b.tree()
	if _, err := workspace.Solve(t.Context(), b.course, b.dir, 2); err == nil {
		t.Error("no error")
	}
	b.mustEqual(mine)
}
