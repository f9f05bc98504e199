package proof

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// TestBadInputIsOneLine wants bad input to end in one line on stderr and exit code 2, and to change nothing, on a machine without an
// engine.
func TestBadInputIsOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		says string
		prep func(t *testing.T, l lab)
	}{
		"no command":             {"", "lab --help", nil},
		"unknown command":        {"chekc 1", "lab --help", nil},
		"unknown flag":           {"check 1 --fast", "lab --help", nil},
		"no number":              {"check", "check N", nil},
		"no such lab":            {"solve 99", "1 to ", nil},
		"not a number":           {"check abc", "1 to ", nil},
		"cluster on the moon":    {"--cluster moon check 1", "kind, embedded, auto", nil},
		"hint without a check":   {"hint 3", "make lab-3", nil},
		"undo without work":      {"undo", "nothing to bring back", nil},
		"no workspace":           {"--workspace= check 1", "name a folder", nil},
		"workspace is home":      {"--workspace HOME solve 1", "did not make the folder", nil},
		"workspace in the lab":   {"--workspace ROOT/labs/mine check 1", "course", nil},
		"somebody's folder":      {"--workspace HOME/diary solve 1", "did not make the folder", writeFile("HOME/diary/monday")},
		"workspace below a file": {"--workspace HOME/letter/inside check 1", "is a file", writeFile("HOME/letter")},
		"lab.yaml is not YAML":   {"check 1", "labs/04-reconciler/lab.yaml", writeFile("ROOT/labs/04-reconciler/lab.yaml")},
		"outside of a checkout":  {"check 1", "checkout", func(t *testing.T, l lab) { _ = os.Remove(filepath.Join(l.root, "labs", "course.yaml")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			if tc.prep != nil {
				tc.prep(t, l)
			}
			before := l.files(t)
			a := l.run(t, strings.Fields(tc.args)...)
			if a.code != exit.UsageError || a.stdout != "" || strings.Count(a.stderr, "\n") != 1 || !strings.Contains(a.stderr, tc.says) {
				t.Errorf("exit code %d, %q on stdout, %q on stderr; want %d, nothing, and one line with %q", a.code, a.stdout, a.stderr, exit.UsageError, tc.says)
			}
			if diff := cmp.Diff(before, l.files(t)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
		})
	}
}

func writeFile(path string) func(*testing.T, lab) {
	return func(t *testing.T, l lab) {
		path := l.folders(path)
		coursetest.Write(t, filepath.Dir(path), filepath.Base(path), "\tdear reader")
	}
}

// A machine that cannot judge is told from wrong code, whatever the learner wrote, and the line names what fixes it.
func TestMachineWithoutEngineOrGo(t *testing.T) {
	for cluster, says := range map[string]string{"kind": "fix: unset DOCKER_HOST", "auto": "make setup"} {
		a := newLab(t).run(t, "--cluster", cluster, "check", "4")
		if a.code != exit.EnvironmentError || a.stdout != "" || !strings.Contains(a.stderr, says) {
			t.Errorf("--cluster %s: exit code %d, %q on stdout, want %d and nothing, and %q in %s", cluster, a.code, a.stdout, exit.EnvironmentError, says, a.stderr)
		}
	}
}

// TestLearnersWay does lab 4 as a learner does, with nothing but the command, in a checkout and a home of its own: red, a hint, work
// that is saved and brought back, the solution, green, and nothing left. Each verdict has a fresh kind cluster.
func TestLearnersWay(t *testing.T) {
	l := newRealLab(t)
	manager, err := clusters.New(filepath.Join(l.root, ".lab"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := manager.Provider().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	red := l.run(t, "--cluster=kind", "check", "4")
	if red.code != exit.Fail || !strings.Contains(red.stdout, "fail: ") || !strings.Contains(red.stdout, "`make hint-4` says more") {
		t.Errorf("the starter: exit code %d\n%s\n%s", red.code, red.stdout, red.stderr)
	}
	l.requireDone(t, l.run(t, "hint", "4"), "make hint-4")
	coursetest.Write(t, l.root, "workspace/notes.txt", "remember the milk\n")
	l.requireDone(t, l.run(t, "solve", "4"), "solution of lab 4", "make undo")
	l.requireDone(t, l.run(t, "undo"), "again what it was before solve 4")
	if notes := coursetest.Read(t, l.root, "workspace/notes.txt"); notes != "remember the milk\n" {
		t.Errorf("undo has brought back %q", notes)
	}
	l.requireDone(t, l.run(t, "solve", "4"), "solution of lab 4")
	l.requireDone(t, l.run(t, "--cluster=kind", "check", "4"), fmt.Sprintf("pass: all %d checks hold", len(load(t).Labs[3].Checks)))
	l.requireDone(t, l.run(t, "progress"), "lab 4")
	l.requireDone(t, l.run(t, "down"), "Nothing was running.")

	if after, err := manager.Provider().List(t.Context()); err != nil || !slices.Equal(after, before) {
		t.Errorf("there are the clusters %q, %v, and there were %q", after, err, before)
	}
	if _, err := os.Stat(filepath.Join(l.home, ".kube")); err == nil {
		t.Error("the learner's ~/.kube was written")
	}
}

// lab is the command in a checkout and a home of its own.
type lab struct {
	binary, root, home string
	env                []string
}

// answer is what a command said.
type answer struct {
	code           int
	stdout, stderr string
}

// buildLab compiles the command once for all tests.
var buildLab = sync.OnceValues(func() (string, error) {
	binary, err := filepath.Abs(filepath.Join(root, ".lab", "proof", "lab"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", binary, "./labs/cmd/lab")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lab: %w\n%s", err, out)
	}
	return binary, nil
})

// newLab is on a machine that has git and nothing else.
func newLab(t *testing.T) lab {
	t.Helper()
	binary, err := buildLab()
	if err != nil {
		t.Fatal(err)
	}
	l := lab{binary: binary, root: filepath.Join(t.TempDir(), "checkout"), home: t.TempDir()}
	coursetest.CopyCheckout(t, root, l.root)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.Symlink(git, filepath.Join(path, "git")); err != nil {
		t.Fatal(err)
	}
	l.env = []string{"HOME=" + l.home, "PATH=" + path, "DOCKER_HOST=unix:///nowhere"}
	return l
}

// newRealLab is on this machine, with its caches.
func newRealLab(t *testing.T) lab {
	t.Helper()
	l := newLab(t)
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(caches))
	l.env = append(os.Environ(), "HOME="+l.home, "GOMODCACHE="+dirs[0], "GOCACHE="+dirs[1])
	return l
}

// folders has ROOT and HOME replaced by the folders of the lab.
func (l lab) folders(text string) string {
	return strings.NewReplacer("HOME", l.home, "ROOT", l.root).Replace(text)
}

func (l lab) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	for i := range args {
		args[i] = l.folders(args[i])
	}
	cmd := exec.CommandContext(t.Context(), l.binary, args...)
	cmd.Dir, cmd.Env = l.root, l.env
	return cmd
}

// run calls the command in the checkout.
func (l lab) run(t *testing.T, args ...string) answer {
	t.Helper()
	cmd := l.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("lab %v: %v", args, err)
	}
	return answer{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (l lab) requireDone(t *testing.T, a answer, says ...string) {
	t.Helper()
	if a.code != exit.OK {
		t.Errorf("exit code %d, want 0: %s", a.code, a.stderr)
	}
	for _, want := range says {
		if !strings.Contains(a.stdout, want) {
			t.Errorf("the report does not say %q:\n%s", want, a.stdout)
		}
	}
}

// files are the contents of everything in the checkout and the home, by path, but for the state folder.
func (l lab) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, dir := range []string{l.root, l.home} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				if entry.Name() == ".lab" {
					return fs.SkipDir // it has the files of locks
				}
				files[path+"/"] = ""
				return err
			}
			data, err := os.ReadFile(path)
			files[path] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
