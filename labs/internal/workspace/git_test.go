package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// repository is all of .git but what lab keeps there.
func (b *fixture) repository() course.Tree {
	b.Helper()
	tree, err := course.ReadTreeExcept(filepath.Join(b.dir, ".git"), func(path string, _ fs.DirEntry) bool { return path == "lab" })
	if err != nil {
		b.Fatal(err)
	}
	return tree
}

// Branches, HEAD, index and settings stay, byte for byte.
func TestTheRepositoryStaysAsItIs(t *testing.T) {
	b := newWorkspace(t)
	b.write("main.go", "package main // stashed\n")
	b.git("stash")
	b.git("checkout", "--quiet", "-b", "lab/saves")
	b.write("main.go", "package main // staged\n")
	b.git("add", "main.go")
	b.write("main.go", "package main // staged and changed again\n")
	before := b.repository()
	b.comesBack(3)
	if diff := before.Diff(b.repository()); diff != nil {
		t.Errorf("changed: %q", diff)
	}
}

// A user's settings start programs, and the environment of a shell inside of a git hook points git at another
// repository. None of that reaches the repository that is made.
func TestNothingOfTheUserReachesANewRepository(t *testing.T) {
	b := newFixture(t)
	home, ran, other := &fixture{T: t, dir: os.Getenv("HOME")}, filepath.Join(t.TempDir(), "ran"), t.TempDir()
	home.write("hooks/reference-transaction", "#!/bin/sh\ntouch '"+ran+"'\n")
	if err := os.Chmod(filepath.Join(home.dir, "hooks/reference-transaction"), 0o755); err != nil {
		t.Fatal(err)
	}
	home.write(".gitconfig", "[core]\n\thooksPath = "+home.dir+"/hooks\n")
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"} {
		t.Setenv(name, other)
	}
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, "index"))
	b.solve(1)
	if entries, err := os.ReadDir(other); len(entries) > 0 {
		t.Errorf("written to another repository: %v, %v", entries, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
}

// A repository within the workspace keeps its history, and its files are saved
// like all others.
func TestNestedRepositoriesSurvive(t *testing.T) {
	b := newWorkspace(t)
	nested := &fixture{T: t, dir: filepath.Join(b.dir, "third_party", "lib")}
	nested.write("lib.go", "package lib\n")
	nested.git("init", "--quiet")
	nested.git("add", ".")
	nested.git("commit", "--quiet", "-m", "theirs")
	nested.write("lib.go", "package lib // changed\n")
	b.write("sub/.git", "gitdir: ../.git/modules/sub\n") // as a submodule has it
	b.write("sub/sub.go", "package sub\n")
	b.comesBack(1)
	if log := nested.git("log", "--format=%s"); log != "theirs" {
		t.Errorf("the history of the nested repository: %q", log)
	}
	if diff := nested.git("diff", "--stat"); !strings.Contains(diff, "lib.go") {
		t.Errorf("the change in the nested repository: %q", diff)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "sub/.git")); err != nil {
		t.Error(err)
	}
}

// Around a workspace there may be a bigger repository. It notices nothing but
// a folder that is not its own.
func TestARepositoryAroundTheWorkspaceIsLeftAlone(t *testing.T) {
	b := newFixture(t)
	around := &fixture{T: t, dir: t.TempDir()}
	around.write("mine.txt", "mine")
	around.git("init", "--quiet")
	around.git("add", ".")
	around.git("commit", "--quiet", "-m", "mine")
	before := around.repository()
	b.dir = filepath.Join(around.dir, "deep", "workspace")
	b.solve(1)
	b.solve(2)
	b.undo()
	if diff := before.Diff(around.repository()); diff != nil {
		t.Errorf("changed: %q", diff)
	}
}

func TestSavesSurviveGarbageCollection(t *testing.T) {
	b := newWorkspace(t)
	b.write("notes", "mine")
	mine := b.tree()
	b.solve(1)
	b.git("gc", "--quiet", "--prune=now", "--aggressive")
	b.undo()
	b.mustEqual(mine)
	if fsck := b.git("fsck", "--strict"); fsck != "" {
		t.Error(fsck)
	}
}

func TestNothingChangesWhenTheWorkCannotBeSaved(t *testing.T) {
	for name, damage := range map[string]func(b *fixture){
		"saves that are a file":        func(b *fixture) { b.write(".git/lab/saves", "") },
		"a name that no save may have": func(b *fixture) { b.write("sub/.GIT/config", "") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkspace(t)
			b.write("notes", "mine")
			damage(b)
			mine := b.tree()
			if _, err := workspace.Solve(t.Context(), b.course, b.dir, 2); err == nil {
				t.Error("no error")
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			b.mustEqual(mine)
		})
	}
}
