package workspace_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// refused expects every command that changes a workspace to refuse the folder
// with a usage error of one line, and the folder around it to stay as it is.
func (b *fixture) refused(dir, around, want string) {
	b.Helper()
	before, err := course.ReadTree(around)
	if err != nil {
		b.Fatal(err)
	}
	check := func(command string, err error) {
		b.Helper()
		if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			b.Errorf("%s: got %v, want %q", command, err, want)
		}
	}
	_, err = workspace.Solve(b.Context(), b.course, dir, 1)
	check("solve", err)
	_, err = workspace.Reset(b.Context(), b.course, dir, 1)
	check("reset", err)
	after, err := course.ReadTree(around)
	if err != nil {
		b.Fatal(err)
	}
	if diff := before.Diff(after); diff != nil {
		b.Errorf("changed: %q", diff)
	}
}

func (b *fixture) neverAWorkspace(dir, want string) {
	b.Helper()
	if created, err := workspace.Ensure(b.Context(), b.course, dir); created || exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), want) {
		b.Errorf("check: got %v, want %q", err, want)
	}
}

func TestHomeIsNoWorkspace(t *testing.T) {
	b := newFixture(t)
	home := filepath.Join(os.Getenv("HOME"), "people", "me")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, dir := range []string{home, filepath.Dir(home), home + "/."} {
		b.refused(dir, home, "home folder")
		b.neverAWorkspace(dir, "home folder")
	}
}

func TestRootIsNoWorkspace(t *testing.T) {
	b := newFixture(t)
	b.refused("/", b.course.Root, "the whole file system")
	b.neverAWorkspace("/", "the whole file system")
	b.neverAWorkspace("", "is empty")
}

func TestTheCheckoutIsNoWorkspace(t *testing.T) {
	b := newFixture(t)
	for _, dir := range []string{b.course.Root, filepath.Dir(b.course.Root)} {
		b.refused(dir, b.course.Root, "holds the course itself")
		b.neverAWorkspace(dir, "holds the course itself")
	}
	for _, name := range []string{"operator/mine", "labs/08-mine", ".git/mine", ".lab/w"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.course.Root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		b.refused(filepath.Join(b.course.Root, name), b.course.Root, "belongs to the course")
		b.neverAWorkspace(filepath.Join(b.course.Root, name), "belongs to the course")
	}
}

// The finished operator can be checked, but no command may overwrite it.
func TestTheOperatorIsNotOverwritten(t *testing.T) {
	b := newFixture(t)
	dir := filepath.Join(b.course.Root, "operator")
	b.refused(dir, b.course.Root, "belongs to the course")
	if created, err := workspace.Ensure(t.Context(), b.course, dir); created || err != nil {
		t.Error(created, err)
	}
}

func TestSomebodysFileIsNoWorkspace(t *testing.T) {
	b := newFixture(t)
	b.write("thesis.txt", "my life")
	file := filepath.Join(b.dir, "thesis.txt")
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		b.refused(dir, b.dir, "thesis.txt is a file")
		b.neverAWorkspace(dir, "thesis.txt is a file")
	}
}

// TestSomebodysFolderIsRefused has folders that lab did not make, and that are not the course's module.
func TestSomebodysFolderIsRefused(t *testing.T) {
	b := newFixture(t)
	b.write("thesis.txt", "my life")
	b.refused(b.dir, b.dir, "module example.com/greeter")
	b.write("go.mod", "module example.com/mine\n")
	b.refused(b.dir, b.dir, "module example.com/greeter")
}

func TestEmptyFolderIsNotFilled(t *testing.T) {
	b := newFixture(t)
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.refused(b.dir, b.dir, "rmdir")
}

func TestLinksAreFollowedToWhatTheyName(t *testing.T) {
	b := newWorkspace(t)
	links := &fixture{T: t, dir: t.TempDir()}
	links.link(b.dir, "link")
	b.must(workspace.Solve(t.Context(), b.course, filepath.Join(links.dir, "link"), 2))
	b.mustEqual(b.stage(2))
	links.link(os.Getenv("HOME"), "innocent")
	b.refused(filepath.Join(links.dir, "innocent"), os.Getenv("HOME"), "home folder")
	links.link(filepath.Join(t.TempDir(), "gone"), "nowhere")
	b.neverAWorkspace(filepath.Join(links.dir, "nowhere"), "leads nowhere")
}

// A folder of the workspace that was replaced by a link is replaced again;
// what the link leads to is not touched.
func TestLinksInsideAreNotFollowed(t *testing.T) {
	b := newWorkspace(t)
	victim := &fixture{T: t, dir: t.TempDir()}
	victim.write("config.yaml", "precious")
	b.link(victim.dir, "config")
	b.link(filepath.Join(victim.dir, "config.yaml"), "main.go")
	before := victim.tree()
	b.comesBack(3)
	if diff := before.Diff(victim.tree()); diff != nil {
		t.Errorf("written through a link: %q", diff)
	}
}

func TestFilesBecomeFoldersAndBack(t *testing.T) {
	b := newWorkspace(t)
	b.remove("config")
	b.write("config", "a file")
	b.remove("main.go")
	b.write("main.go/inside", "a folder")
	b.comesBack(2)
}

// A pipe cannot be saved, so it stays where it is.
func TestSpecialFilesAreLeftAlone(t *testing.T) {
	b := newWorkspace(t)
	b.pipe("events.pipe")
	b.solve(1)
	if info, err := os.Lstat(filepath.Join(b.dir, "events.pipe")); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// When something is in the way that cannot be saved, the files are put back.
func TestAFailedChangeIsPutBack(t *testing.T) {
	b := newWorkspace(t)
	b.pipe("docs") // stage 3 has a folder of that name
	b.write("main.go", "package main // mine\n")
	b.write("notes", "mine")
	mine := b.listing()
	if _, err := workspace.Solve(t.Context(), b.course, b.dir, 3); err == nil || !strings.Contains(err.Error(), "which is as it was") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(mine, b.listing()); diff != "" {
		t.Error(diff)
	}
}

// listing is what stands in the workspace, whatever it is: name, kind, and
// content of files.
func (b *fixture) listing() (lines []string) {
	b.Helper()
	err := filepath.WalkDir(b.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		text := ""
		if d.Type().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text = string(data)
		}
		lines = append(lines, d.Type().String()+" "+name+" "+text)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return lines
}

// pipe makes a named pipe in the workspace.
func (b *fixture) pipe(name string) {
	b.Helper()
	if out, err := exec.Command("mkfifo", filepath.Join(b.dir, name)).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}
