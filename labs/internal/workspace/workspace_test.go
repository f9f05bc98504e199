package workspace

import (
	"context"
	"errors"
	"fmt"
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
)

// fixture is a checkout and the place for a workspace in it.
type fixture struct {
	*testing.T
	course *course.Course
	dir    string
}

// newFixture has no workspace yet. Nothing of the person who runs the test reaches git.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	c := coursetest.Load(t, coursetest.New(t))
	return &fixture{T: t, course: c, dir: filepath.Join(Real(c.Root), "workspace")}
}

// newWorkspace has one with the starter of lab 1.
func newWorkspace(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	if created, err := Ensure(t.Context(), f.course, f.dir); err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return f
}

func (f *fixture) write(name, text string) {
	f.Helper()
	coursetest.Write(f, f.dir, name, text)
}

func (f *fixture) remove(name string) {
	f.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, name)); err != nil {
		f.Fatal(err)
	}
}

// link makes a symbolic link in the place of whatever is there.
func (f *fixture) link(to, name string) {
	f.Helper()
	f.remove(name)
	if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
		f.Fatal(err)
	}
}

// tree is everything in a folder but .git, the settings of VS Code and pipes.
func (f *fixture) tree(dir string) course.Tree {
	f.Helper()
	tree, err := course.ReadTree(dir, func(name string, entry fs.DirEntry) bool {
		return name == ".vscode" || entry.Type()&fs.ModeNamedPipe != 0
	})
	if err != nil {
		f.Fatal(err)
	}
	return tree
}

func (f *fixture) mustBeStage(n int) {
	f.Helper()
	tree, err := f.course.Render(n)
	if err != nil {
		f.Fatal(err)
	}
	f.mustEqual(tree)
}

func (f *fixture) mustEqual(want course.Tree) {
	f.Helper()
	if diff := want.Diff(f.tree(f.dir)); diff != nil {
		f.Errorf("differ: %q", diff)
	}
}

func (f *fixture) bring(stage int) Change {
	f.Helper()
	change, err := Bring(f.Context(), f.course, f.dir, stage, fmt.Sprintf("before solve %d", stage))
	if err != nil {
		f.Fatal(err)
	}
	return change
}

func (f *fixture) undo(number string) Change {
	f.Helper()
	change, err := Restore(f.Context(), f.course, f.dir, number)
	if err != nil {
		f.Fatal(err)
	}
	return change
}

// comesBack brings the workspace to a stage, and expects an undo to bring back every file.
func (f *fixture) comesBack(stage int) {
	f.Helper()
	mine := f.tree(f.dir)
	f.bring(stage)
	f.mustBeStage(stage)
	f.undo("")
	f.mustEqual(mine)
}

// git runs the learner's own git in the workspace.
func (f *fixture) git(args ...string) string {
	f.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=L", "-c", "user.email=l@example.com"}, args...)...)
	cmd.Dir = f.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestEnsureCreatesFirstStarter(t *testing.T) {
	f := newWorkspace(t)
	f.mustBeStage(0)
	if status := f.git("status", "--porcelain", "--branch"); status != "## main\n?? .vscode/" { // the operator's .gitignore has it
		t.Errorf("git status: %s", status)
	}
	f.write("thesis.txt", "my life")
	before := f.tree(f.dir)
	if created, err := Ensure(t.Context(), f.course, f.dir); created || err != nil {
		t.Errorf("the second time: %v, %v", created, err)
	}
	f.mustEqual(before)
}

func TestFailedEnsureLeavesNothing(t *testing.T) {
	f := newFixture(t)
	t.Setenv("PATH", t.TempDir()) // without git
	if created, err := Ensure(t.Context(), f.course, f.dir); created || exit.Code(err) != exit.EnvironmentError {
		t.Errorf("%v, %v", created, err)
	}
	if left, err := filepath.Glob(filepath.Join(f.course.Root, "*workspace*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestBringMakesTreeEqualToStage(t *testing.T) {
	f := newFixture(t)
	if change := f.bring(2); !change.Created || change.Saved != 0 {
		t.Errorf("%+v", change)
	}
	f.mustBeStage(2)
	f.write("extra/deep/file.go", "package deep")
	if change := f.bring(0); change.Saved != 1 || !slices.Contains(change.Paths, "main.go") || !slices.Contains(change.Paths, "extra/deep/file.go") {
		t.Errorf("%+v", change)
	}
	f.mustBeStage(0)
	if _, err := os.Stat(filepath.Join(f.dir, "extra")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder stayed: %v", err)
	}
	if change := f.bring(0); len(change.Paths) > 0 || change.Saved != 0 {
		t.Errorf("the second time: %+v", change)
	}
}

func TestUndoRestoresEveryByte(t *testing.T) {
	f := newWorkspace(t)
	for name, text := range map[string]string{
		"with space.txt": "a", "with\nnewline": "b", "with\ttab \"quoted\"": "c", "back\\slash": "d", "ünïcödé/日本.go": "e",
		"-dash": "f", "*": "g", "'; rm -rf $HOME; '": "h", "crlf.txt": "one\r\ntwo", "binary": "\x00\xff\xfe\r\n\x00", "empty": "",
		".hidden/.deeper/.file": "i", "invalid-\xff-utf8": "j", ".GIT/hooks/post-commit": "k", ".gitignore": "*\n",
		"main.go": "package main // my own\n", "script.sh": "#!/bin/sh\n",
	} {
		f.write(name, text)
	}
	if err := os.Chmod(filepath.Join(f.dir, "script.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.link("../../nowhere", "link")
	f.remove("Makefile")
	f.remove("config")
	f.write("config", "a file in the place of a folder")
	f.comesBack(3)
}

func TestLinksInsideAreNotFollowed(t *testing.T) {
	f := newWorkspace(t)
	victim := &fixture{T: t, dir: t.TempDir()}
	victim.write("config.yaml", "precious")
	f.link(victim.dir, "config")
	f.link(filepath.Join(victim.dir, "config.yaml"), "main.go")
	before := victim.tree(victim.dir)
	f.comesBack(3)
	victim.mustEqual(before)
}

// The tasks of a workspace in the checkout have no path of the machine.
func TestTasksNameTheCheckout(t *testing.T) {
	f := newWorkspace(t)
	elsewhere := filepath.Join(t.TempDir(), "mine")
	if _, err := Ensure(t.Context(), f.course, elsewhere); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{f.dir: `"cwd": "${workspaceFolder}/.."`, elsewhere: `"cwd": "` + Real(f.course.Root) + `"`} {
		if text := coursetest.Read(t, dir, ".vscode/tasks.json"); !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

func TestBinAndEditorFoldersAreKept(t *testing.T) {
	f := newWorkspace(t)
	kept := []string{"bin/manager", ".vscode/settings.json", ".idea/workspace.xml"}
	for _, name := range append(kept, "cmd/bin/tool") {
		f.write(name, "keep")
	}
	change := f.bring(1)
	for _, name := range kept {
		if coursetest.Read(t, f.dir, name) != "keep" || slices.Contains(change.Paths, name) {
			t.Errorf("%s was touched", name)
		}
	}
	if !slices.Contains(change.Paths, "cmd/bin/tool") {
		t.Error("cmd/bin stayed")
	}
}

// Work done after an undo is not lost by the next undo either.
func TestEverySaveCanBeRestored(t *testing.T) {
	f := newWorkspace(t)
	f.write("notes", "first")
	f.bring(1)
	f.write("notes", "second")
	f.bring(2)
	if change := f.undo(""); change.Restored.Reason != "before solve 2" || change.Saved != 3 {
		t.Errorf("%+v", change)
	}
	f.write("notes", "third")
	f.undo("")
	f.mustBeStage(2)
	saves, err := savesOf(f.course, Real(f.dir)).list()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range saves {
		f.undo(strconv.Itoa(s.Number))
		text, _ := os.ReadFile(filepath.Join(f.dir, "notes"))
		got = append(got, fmt.Sprintf("%d %s: %s", s.Number, s.Reason, text))
	}
	want := []string{"1 before solve 1: first", "2 before solve 2: second", "3 before undo: ", "4 before undo: third"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Restore(t.Context(), f.course, f.dir, "yesterday"); exit.Code(err) != exit.UsageError {
		t.Errorf("a save that is not there: %v", err)
	}
}

func TestBringWithoutSaveChangesNothing(t *testing.T) {
	f := newWorkspace(t)
	if _, err := Restore(t.Context(), f.course, f.dir, ""); exit.Code(err) != exit.UsageError {
		t.Errorf("nothing was saved yet: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Bring(cancelled, f.course, f.dir, 2, "before solve 2"); exit.Code(err) != exit.Interrupted {
		t.Errorf("interrupted: %v", err)
	}
	state := &fixture{T: t, dir: filepath.Join(f.course.Root, ".lab")}
	state.remove("saves")
	state.write("saves", "a file")
	if _, err := Bring(t.Context(), f.course, f.dir, 2, "before solve 2"); err == nil {
		t.Error("the work was not saved, and there is no error")
	}
	f.mustBeStage(0)
}

func TestSavesOutliveWorkspace(t *testing.T) {
	for name, happens := range map[string]func(f *fixture){
		"its repository is a new one": func(f *fixture) { f.remove(".git"); f.git("init", "--quiet") },
		"its go.mod is gone":          func(f *fixture) { f.remove("go.mod") },
		"it is gone":                  func(f *fixture) { f.remove(".") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newWorkspace(t)
			f.write("notes", "mine")
			mine := f.tree(f.dir)
			f.bring(1)
			happens(f)
			f.undo("")
			f.mustEqual(mine)
		})
	}
}

func TestCloneIsWorkspace(t *testing.T) {
	first := newWorkspace(t)
	second := &fixture{T: t, course: first.course, dir: filepath.Join(Real(t.TempDir()), "mine")}
	first.git("clone", "--quiet", first.dir, second.dir)
	second.write("notes", "mine")
	second.comesBack(2)
	if saves, err := savesOf(first.course, Real(first.dir)).list(); err != nil || len(saves) > 0 {
		t.Errorf("of the first one: %v, %v", saves, err)
	}
}

// A pipe cannot be saved, so it stays, and is in the way of a folder of stage 3.
func TestUndoRestoresAfterFailedBring(t *testing.T) {
	f := newWorkspace(t)
	if out, err := exec.Command("mkfifo", filepath.Join(f.dir, "docs")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.write("main.go", "package main // mine\n")
	mine := f.tree(f.dir)
	if _, err := Bring(t.Context(), f.course, f.dir, 3, "before solve 3"); err == nil || !strings.Contains(err.Error(), "`make undo`") {
		t.Errorf("%v", err)
	}
	f.undo("")
	f.mustEqual(mine)
}

// An editor may save between the moment in which lab reads a file and the moment in which it removes it.
func TestApplyKeepsFileOfEditor(t *testing.T) {
	f := newFixture(t)
	f.write("a", "saved by an editor")
	have := course.Tree{"a": {Data: []byte("before"), Mode: 0o644}}
	if err := apply(f.dir, have, course.Tree{}); err == nil {
		t.Error("no error")
	}
	if text := coursetest.Read(t, f.dir, "a"); text != "saved by an editor" {
		t.Error(text)
	}
}

// A repository from elsewhere may name programs that git starts.
func TestRepositoryIsNeitherReadNorChanged(t *testing.T) {
	f := newWorkspace(t)
	f.write("third_party/lib/.git/HEAD", "ref: refs/heads/main\n")
	f.write("sub/.git", "gitdir: ../.git/modules/sub\n") // as a submodule has it
	bin, before := t.TempDir(), f.tree(filepath.Join(f.dir, ".git"))
	coursetest.Write(t, bin, "git", "#!/bin/sh\ntouch '"+bin+"/ran'\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	f.comesBack(3)
	if diff := before.Diff(f.tree(filepath.Join(f.dir, ".git"))); diff != nil {
		t.Errorf("changed: %q", diff)
	}
	for _, kept := range []string{"third_party/lib/.git/HEAD", "sub/.git"} {
		coursetest.Read(t, f.dir, kept)
	}
	if _, err := os.Stat(filepath.Join(bin, "ran")); err == nil {
		t.Error("git ran")
	}
}
