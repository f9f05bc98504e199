package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// fixture is a checkout and the place for a workspace in it.
type fixture struct {
	*testing.T
	course *course.Course
	dir    string
}

// newFixture has no workspace yet. Nothing of the person who runs the test
// reaches git.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	c := coursetest.Load(t, coursetest.New(t))
	return &fixture{T: t, course: c, dir: filepath.Join(c.Root, "workspace")}
}

// newWorkspace has one with the starter of lab 1.
func newWorkspace(t *testing.T) *fixture {
	t.Helper()
	b := newFixture(t)
	if created, err := workspace.Ensure(t.Context(), b.course, b.dir); err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return b
}

func (b *fixture) write(name, text string) {
	b.Helper()
	coursetest.Write(b, b.dir, name, text)
}

func (b *fixture) remove(name string) {
	b.Helper()
	if err := os.RemoveAll(filepath.Join(b.dir, name)); err != nil {
		b.Fatal(err)
	}
}

// link makes a symbolic link in the place of whatever is there.
func (b *fixture) link(to, name string) {
	b.Helper()
	b.remove(name)
	if err := os.Symlink(to, filepath.Join(b.dir, name)); err != nil {
		b.Fatal(err)
	}
}

// tree is everything in the workspace but .git.
func (b *fixture) tree() course.Tree {
	b.Helper()
	tree, err := course.ReadTree(b.dir)
	if err != nil {
		b.Fatal(err)
	}
	return tree
}

func (b *fixture) stage(n int) course.Tree {
	b.Helper()
	tree, err := b.course.Render(n)
	if err != nil {
		b.Fatal(err)
	}
	return tree
}

func (b *fixture) mustEqual(want course.Tree) {
	b.Helper()
	if diff := want.Diff(b.tree()); diff != nil {
		b.Errorf("differ: %q", diff)
	}
}

// must passes a change on and stops the test on an error.
func (b *fixture) must(c workspace.Change, err error) workspace.Change {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *fixture) solve(lab int) workspace.Change {
	b.Helper()
	return b.must(workspace.Solve(b.Context(), b.course, b.dir, lab))
}

func (b *fixture) undo() workspace.Change {
	b.Helper()
	return b.must(workspace.Restore(b.Context(), b.course, b.dir, ""))
}

// comesBack solves a lab, and expects an undo to bring back every file.
func (b *fixture) comesBack(lab int) workspace.Change {
	b.Helper()
	mine := b.tree()
	b.solve(lab)
	b.mustEqual(b.stage(lab))
	change := b.undo()
	b.mustEqual(mine)
	return change
}

// git runs the learner's own git in the workspace.
func (b *fixture) git(args ...string) string {
	b.Helper()
	out, err := b.tryGit(args...)
	if err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (b *fixture) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=L", "-c", "user.email=l@example.com"}, args...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestEnsureCreatesTheFirstStarter(t *testing.T) {
	b := newWorkspace(t)
	b.mustEqual(b.stage(0))
	if status := b.git("status", "--porcelain"); status != "" {
		t.Errorf("not clean: %s", status)
	}
	if branch := b.git("symbolic-ref", "HEAD"); branch != "refs/heads/main" {
		t.Error(branch)
	}
	if worktree, _ := exec.Command("git", "-C", b.dir, "config", "core.worktree").Output(); len(worktree) > 0 {
		t.Errorf("the repository is tied to %s", worktree)
	}
	siblings, _ := filepath.Glob(filepath.Join(b.course.Root, ".lab-workspace-*"))
	if len(siblings) > 0 {
		t.Errorf("left behind: %s", siblings)
	}
	if created, err := workspace.Ensure(t.Context(), b.course, b.dir); created || err != nil {
		t.Errorf("the second time: %v, %v", created, err)
	}
}

// What is in a folder is for the checks to judge, and nobody writes to it.
func TestEnsureLeavesAnExistingFolderAlone(t *testing.T) {
	b := newFixture(t)
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", "thesis.txt"} {
		if file != "" {
			b.write(file, "my life")
		}
		before := b.tree()
		if created, err := workspace.Ensure(t.Context(), b.course, b.dir); created || err != nil {
			t.Errorf("with %q: %v, %v", file, created, err)
		}
		b.mustEqual(before)
	}
}

func TestSolveAndResetMakeTheTreeEqualToAStage(t *testing.T) {
	b := newFixture(t)
	change := b.solve(2)
	if !change.Created || change.Saved != 0 {
		t.Errorf("%+v", change)
	}
	b.mustEqual(b.stage(2))
	b.write("extra/deep/file.go", "package deep")
	change = b.must(workspace.Reset(t.Context(), b.course, b.dir, 1))
	if change.Saved == 0 || !slices.Contains(change.Paths, "main.go") || !slices.Contains(change.Paths, "extra/deep/file.go") {
		t.Errorf("%+v", change)
	}
	b.mustEqual(b.stage(0))
	if _, err := os.Stat(filepath.Join(b.dir, "extra")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder stayed: %v", err)
	}
}

func TestSolveTwiceChangesNothing(t *testing.T) {
	b := newWorkspace(t)
	b.solve(1)
	if change := b.solve(1); len(change.Paths) > 0 || change.Saved != 0 {
		t.Errorf("%+v", change)
	}
	if saves, _ := workspace.Saves(b.course, b.dir); len(saves) != 1 {
		t.Errorf("%d saves", len(saves))
	}
}

// awkward are file names that have broken somebody's script before.
var awkward = map[string]string{
	"with space.txt":         "a",
	"with\nnewline":          "b",
	"with\ttab \"quoted\"":   "c",
	"back\\slash":            "d",
	"ünïcödé/日本.go":          "e",
	"-dash":                  "f",
	"*":                      "g",
	"'; rm -rf $HOME; '":     "h",
	"no-end-of-line":         "last",
	"crlf.txt":               "one\r\ntwo\r\n",
	"binary":                 "\x00\xff\xfe\r\n\x00",
	"empty":                  "",
	".hidden/.deeper/.file":  "i",
	"invalid-\xff-utf8":      "j",
	".GIT/hooks/post-commit": "k",
	".gitignore":             "*\n",

	"long/" + strings.Repeat("long-\xff/", 40) + strings.Repeat("l", 200): "l",
}

func TestUndoBringsBackEveryByte(t *testing.T) {
	b := newWorkspace(t)
	for name, text := range awkward {
		b.write(name, text)
	}
	b.write("main.go", "package main // my own\n")
	b.write("script.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(b.dir, "script.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.link("../../nowhere", "link")
	b.link(strings.Repeat("x/../", 100)+"\xff", "long-link")
	b.remove("Makefile")
	change := b.comesBack(3)
	if change.Restored.Reason != "before solve 3" {
		t.Errorf("%+v", change)
	}
}

// What a build leaves and what editors keep is nobody's answer to a lab.
func TestBuildsAndEditorsAreLeftAlone(t *testing.T) {
	b := newWorkspace(t)
	left := []string{"bin/manager", ".vscode/settings.json", ".idea/workspace.xml"}
	for _, name := range left {
		b.write(name, "keep")
	}
	b.write("cmd/bin/tool", "not at the top")
	change := b.solve(1)
	for _, name := range left {
		if coursetest.Read(t, b.dir, name) != "keep" || slices.Contains(change.Paths, name) {
			t.Errorf("%s was touched", name)
		}
	}
	if !slices.Contains(change.Paths, "cmd/bin/tool") {
		t.Error("cmd/bin stayed")
	}
}

func TestUndoOfUndo(t *testing.T) {
	b := newWorkspace(t)
	b.write("notes", "mine")
	mine := b.tree()
	b.solve(2)
	b.undo()
	b.mustEqual(mine)
	b.undo()
	b.mustEqual(b.stage(2))
	b.undo()
	b.mustEqual(mine)
}

// Work done after an undo is not lost by the next undo either.
func TestRestoreReachesEverySave(t *testing.T) {
	b := newWorkspace(t)
	b.write("notes", "first")
	b.solve(1)
	b.write("notes", "second")
	b.solve(2)
	b.undo()
	b.write("notes", "third")
	b.undo()
	saves, err := workspace.Saves(b.course, b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var reasons, notes []string
	for _, s := range saves {
		b.must(workspace.Restore(t.Context(), b.course, b.dir, strconv.Itoa(s.Number)))
		reasons = append(reasons, s.Reason)
		if text, err := os.ReadFile(filepath.Join(b.dir, "notes")); err == nil {
			notes = append(notes, string(text))
		}
	}
	if diff := cmp.Diff([]string{"before solve 1", "before solve 2", "before undo", "before undo"}, reasons); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"first", "second", "third"}, notes); diff != "" {
		t.Error(diff)
	}
}

func TestNothingToUndo(t *testing.T) {
	b := newWorkspace(t)
	if _, err := workspace.Restore(t.Context(), b.course, b.dir, ""); exit.Code(err) != exit.UsageError {
		t.Error(err)
	}
	b.solve(1)
	if _, err := workspace.Restore(t.Context(), b.course, b.dir, "yesterday"); exit.Code(err) != exit.UsageError {
		t.Error(err)
	}
}

func TestBadLabNumbersChangeNothing(t *testing.T) {
	b := newFixture(t)
	for _, lab := range []int{-1, 0, 4, 99} {
		_, err := workspace.Solve(t.Context(), b.course, b.dir, lab)
		if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "1 to 3") {
			t.Errorf("lab %d: %v", lab, err)
		}
	}
	if _, err := os.Stat(b.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a workspace was created")
	}
}

func TestInterruptedCommandsChangeNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	b := newFixture(t)
	if _, err := workspace.Ensure(cancelled, b.course, b.dir); exit.Code(err) != exit.Interrupted {
		t.Errorf("create: %v", err)
	}
	b.nothingLeft()

	b = newWorkspace(t)
	b.write("notes", "mine")
	mine := b.tree()
	if _, err := workspace.Solve(cancelled, b.course, b.dir, 2); exit.Code(err) != exit.Interrupted {
		t.Errorf("solve: %v", err)
	}
	b.mustEqual(mine)
	if saves, err := workspace.Saves(b.course, b.dir); err != nil || len(saves) > 0 {
		t.Errorf("saved: %v, %v", saves, err)
	}
}

func TestAWorkspaceAppearsWholeOrNotAtAll(t *testing.T) {
	b := newFixture(t)
	b.Setenv("PATH", t.TempDir())
	if created, err := workspace.Ensure(t.Context(), b.course, b.dir); created || exit.Code(err) != exit.EnvironmentError || !strings.Contains(err.Error(), "git is missing") {
		t.Errorf("%v, %v", created, err)
	}
	b.nothingLeft()
}

// nothingLeft expects no workspace, and nothing half made beside it.
func (b *fixture) nothingLeft() {
	b.Helper()
	left, err := filepath.Glob(filepath.Join(b.course.Root, ".lab-*"))
	if err != nil || len(left) > 0 {
		b.Errorf("left behind: %q, %v", left, err)
	}
	if _, err := os.Lstat(b.dir); !errors.Is(err, fs.ErrNotExist) {
		b.Errorf("there is a workspace: %v", err)
	}
}
