package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
)

func (b *fixture) repository() course.Tree {
	b.Helper()
	tree, err := course.ReadTree(filepath.Join(b.dir, ".git"))
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

// A repository from elsewhere may name programs, and git starts them: so git does not run in a workspace that is there.
func TestGitDoesNotRunInAWorkspaceThatIsThere(t *testing.T) {
	b := newWorkspace(t)
	program, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	if err := os.WriteFile(filepath.Join(program, "git"), []byte("#!/bin/sh\ntouch '"+ran+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", program+":"+os.Getenv("PATH"))
	b.comesBack(2)
	if _, err := os.Stat(ran); err == nil {
		t.Error("git ran")
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
