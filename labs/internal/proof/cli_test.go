package proof

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// cliLimit bounds one call of the command. None of those here works for longer than a second; the rest
// is for an engine that looks for an image.
const cliLimit = time.Minute

// TestCommand calls the compiled command as make does. What needs no engine has none.
func TestCommand(t *testing.T) {
	t.Parallel()
	binary := buildLab(t)
	t.Run("bad input is one line", func(t *testing.T) { badInputIsOneLine(t, binary) })
	t.Run("machine without an engine", func(t *testing.T) { machineWithoutAnEngine(t, binary) })
	t.Run("machine with nothing", func(t *testing.T) { machineWithNothing(t, binary) })
	t.Run("outside of a checkout", func(t *testing.T) { outsideOfACheckout(t, binary) })
	t.Run("node image that is none", func(t *testing.T) { nodeImageThatIsNone(t, binary) })
	t.Run("work is never lost", func(t *testing.T) { workIsNeverLost(t, binary) })
}

// badInputIsOneLine wants bad input to end in one line on stderr and exit code 2, and to change
// nothing, on a machine without an engine.
func badInputIsOneLine(t *testing.T, binary string) {
	all := fmt.Sprint("1 to ", len(load(t).Labs))
	for name, tc := range map[string]struct {
		args []string
		says []string
		prep func(t *testing.T, l lab)
	}{
		"no command":           {nil, []string{"lab --help"}, nil},
		"unknown command":      {[]string{"chekc", "1"}, []string{"chekc", "lab --help"}, nil},
		"unknown flag":         {[]string{"check", "1", "--fast"}, []string{"--fast", "lab --help"}, nil},
		"flag without value":   {[]string{"check", "1", "--seed"}, []string{"--seed"}, nil},
		"too many arguments":   {[]string{"up", "high"}, []string{"high"}, nil},
		"no number":            {[]string{"check"}, []string{"check N"}, nil},
		"no such lab":          {[]string{"check", "99"}, []string{"99", all}, nil},
		"hint for lab zero":    {[]string{"hint", "0"}, []string{all}, nil},
		"not a number":         {[]string{"check", "abc"}, []string{"abc", all}, nil},
		"solve what":           {[]string{"solve", "99"}, []string{all}, nil},
		"reset what":           {[]string{"reset", "x"}, []string{all}, nil},
		"hint for what":        {[]string{"hint", "99"}, []string{all}, nil},
		"cluster on the moon":  {[]string{"--cluster", "moon", "check", "1"}, []string{"moon", "kind", "embedded", "auto"}, nil},
		"hint without a check": {[]string{"hint", "3"}, []string{"make lab-3"}, nil},
		"undo without work":    {[]string{"undo"}, []string{"workspace"}, nil},
		"workspace is a file": {[]string{"--workspace", "HOME/letter", "check", "1"}, []string{"is a file"}, func(t *testing.T, l lab) {
			coursetest.Write(t, l.home, "letter", "dear reader")
		}},
		"workspace below a file": {[]string{"--workspace", "HOME/letter/inside", "check", "1"}, []string{"is a file"}, func(t *testing.T, l lab) {
			coursetest.Write(t, l.home, "letter", "dear reader")
		}},
		"workspace has no name":            {[]string{"--workspace", "", "check", "1"}, []string{"name a folder"}, nil},
		"workspace is home":                {[]string{"--workspace", "HOME", "check", "1"}, []string{"home folder"}, nil},
		"workspace is home, to be solved":  {[]string{"--workspace", "HOME", "solve", "1"}, []string{"home folder"}, nil},
		"workspace is everything":          {[]string{"--workspace", "/", "check", "1"}, []string{"file system"}, nil},
		"workspace is the checkout":        {[]string{"--workspace", "ROOT", "check", "1"}, []string{"course"}, nil},
		"workspace would be in the course": {[]string{"--workspace", "ROOT/labs/mine", "check", "1"}, []string{"course"}, nil},
		"workspace is somebody's, to be solved": {[]string{"--workspace", "HOME/diary", "solve", "1"}, []string{"created"}, func(t *testing.T, l lab) {
			coursetest.Write(t, l.home, "diary/monday", "rain")
		}},
		"lab.yaml is not YAML": {[]string{"check", "1"}, []string{"labs/04-reconciler/lab.yaml"}, func(t *testing.T, l lab) {
			coursetest.Write(t, l.root, "labs/04-reconciler/lab.yaml", "schema: 1\n\tlab: 4\n")
		}},
		"lab.yaml misses a field": {[]string{"check", "1"}, []string{"labs/04-reconciler/lab.yaml", "title"}, func(t *testing.T, l lab) {
			coursetest.Write(t, l.root, "labs/04-reconciler/lab.yaml", "schema: 1\nlab: 4\nname: reconciler\n")
		}},
		"lab.yaml is gone": {[]string{"solve", "1"}, []string{"labs/04-reconciler/lab.yaml"}, func(t *testing.T, l lab) {
			remove(t, filepath.Join(l.root, "labs/04-reconciler/lab.yaml"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, binary)
			if tc.prep != nil {
				tc.prep(t, l)
			}
			before := l.files(t)
			l.requireUsage(t, l.run(t, tc.args...), tc.says...)
			if diff := cmp.Diff(before, l.files(t)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
		})
	}
}

// machineWithoutAnEngine wants the machine to be blamed, whatever the learner wrote, and nothing to be made.
func machineWithoutAnEngine(t *testing.T, binary string) {
	l := newLab(t, binary)
	before := l.files(t)
	a := l.run(t, "--cluster", "kind", "check", "4")
	if a.code != exit.EnvironmentError || a.stdout != "" {
		t.Errorf("exit code %d and %q on stdout, want %d and nothing", a.code, a.stdout, exit.EnvironmentError)
	}
	for _, want := range []string{"no engine answers", "fix: unset DOCKER_HOST"} {
		if !strings.Contains(a.stderr, want) {
			t.Errorf("the line does not say %q: %s", want, a.stderr)
		}
	}
	if diff := cmp.Diff(before, l.files(t)); diff != "" {
		t.Errorf("something was changed:\n%s", diff)
	}
}

// machineWithNothing wants it to be said that there is no engine, and what is missing for doing without.
func machineWithNothing(t *testing.T, binary string) {
	a := newLab(t, binary).run(t, "check", "4")
	if a.code != exit.EnvironmentError || a.stdout != "" {
		t.Errorf("exit code %d and %q on stdout, want %d and nothing", a.code, a.stdout, exit.EnvironmentError)
	}
	for _, want := range []string{"no container engine answers", "kind has the last word", "make setup", "cannot build the embedded control plane", "\"go\""} {
		if !strings.Contains(a.stderr, want) {
			t.Errorf("it does not say %q: %s", want, a.stderr)
		}
	}
}

// outsideOfACheckout wants the command to say where it has to be called.
func outsideOfACheckout(t *testing.T, binary string) {
	l := newLab(t, binary)
	l.root = l.home
	l.requireUsage(t, l.run(t, "check", "1"), "checkout")
}

// nodeImageThatIsNone asks a real engine for images that are none of a node, one that is here and
// one that is nowhere.
func nodeImageThatIsNone(t *testing.T, binary string) {
	for name, image := range map[string]string{
		"no node":  importImage(t),
		"no image": "operator-lab.invalid/node:none",
		"no name":  "Not An Image",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, binary)
			l.env = append(os.Environ(), "HOME="+l.home)
			withoutTelemetry(t, l.home)
			before := l.files(t)
			l.requireUsage(t, l.run(t, "--node-image", image, "check", "1"), image, "no node image")
			if diff := cmp.Diff(before, l.files(t)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
		})
	}
}

// withoutTelemetry keeps go from writing its own counters into home (https://go.dev/doc/telemetry), which would be taken
// for the work of whoever asked it.
func withoutTelemetry(t *testing.T, home string) {
	t.Helper()
	coursetest.Write(t, home, ".config/go/telemetry/mode", "off")
}

// importImage gives the engine an image that holds one file, and takes it away again.
func importImage(t *testing.T) string {
	t.Helper()
	engine := newJudge(t, load(t)).Clusters.Provider().(interface{ Engine() string }).Engine()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err := errors.Join(w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o644}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	ref := fmt.Sprintf("operator-lab.invalid/hello:%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), engine, "import", "-", ref)
	cmd.Stdin = &layer
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("import an image: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(engine, "rmi", ref).CombinedOutput(); err != nil {
			t.Errorf("remove %s: %v\n%s", ref, err, out)
		}
	})
	return ref
}

// workIsNeverLost goes through solve, reset and undo as a learner does, without an engine.
func workIsNeverLost(t *testing.T, binary string) {
	c := load(t)
	l := newLab(t, binary)
	dir := filepath.Join(l.root, "workspace")

	l.requireDone(t, l.run(t, "solve", "4"), "Created workspace/", "solution of lab 4")
	requireStage(t, c, dir, 4)

	const mine = "package controller\n\n// my own idea\n"
	coursetest.Write(t, dir, "internal/controller/memcached_controller.go", mine)
	coursetest.Write(t, dir, "notes.txt", "remember the milk\n")
	l.requireDone(t, l.run(t, "reset", "3"), "starter of lab 3", "make undo")
	requireStage(t, c, dir, 2)

	l.requireDone(t, l.run(t, "undo"), "again what it was before reset 3")
	for name, want := range map[string]string{"internal/controller/memcached_controller.go": mine, "notes.txt": "remember the milk\n"} {
		if data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(data) != want {
			t.Errorf("undo did not bring back %s: %q, %v", name, data, err)
		}
	}
	l.requireDone(t, l.run(t, "undo"), "again what it was before undo")
	requireStage(t, c, dir, 2)

	l.requireDone(t, l.run(t, "reset", "3"), "already", "nothing was changed")
	l.requireDone(t, l.run(t, "undo", "--list"), "before reset 3", "before undo")
	l.requireDone(t, l.run(t, "progress"), "lab 1", "lab 10")
}

// requireStage wants the workspace to be a stage of the course, but for its repository.
func requireStage(t *testing.T, c *course.Course, dir string, stage int) {
	t.Helper()
	want, err := c.Render(stage)
	if err != nil {
		t.Fatal(err)
	}
	have, err := course.ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range have.Diff(want) {
		if !strings.HasPrefix(name, ".git/") {
			t.Errorf("%s differs from stage %d", name, stage)
		}
	}
}

// lab is the command in a checkout and a home of its own, on a machine that has git and nothing else.
type lab struct {
	binary, root, home string
	env                []string
	limit              time.Duration // of one call
}

// answer is what a command said.
type answer struct {
	code           int
	stdout, stderr string
}

// buildLab compiles the command, as `make` does.
func buildLab(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "lab")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./labs/cmd/lab")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build lab: %v\n%s", err, out)
	}
	return binary
}

func newLab(t *testing.T, binary string) lab {
	t.Helper()
	l := lab{binary: binary, root: filepath.Join(t.TempDir(), "checkout"), home: t.TempDir(), limit: cliLimit}
	for _, dir := range []string{"labs", "operator"} {
		if err := os.CopyFS(filepath.Join(l.root, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
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

// run calls the command in the checkout. ROOT and HOME in the arguments are its folders.
func (l lab) run(t *testing.T, args ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), l.limit)
	defer cancel()
	for i := range args {
		args[i] = strings.NewReplacer("HOME", l.home, "ROOT", l.root).Replace(args[i])
	}
	cmd := exec.CommandContext(ctx, l.binary, args...)
	cmd.Dir, cmd.Env = l.root, l.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("lab %v: %v", args, err)
	}
	return answer{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (l lab) requireUsage(t *testing.T, a answer, says ...string) {
	t.Helper()
	if a.code != exit.UsageError {
		t.Errorf("exit code %d, want %d", a.code, exit.UsageError)
	}
	if a.stdout != "" || strings.Count(a.stderr, "\n") != 1 || !strings.HasPrefix(a.stderr, "lab: ") {
		t.Errorf("want one line on stderr and nothing on stdout, got %q and %q", a.stderr, a.stdout)
	}
	for _, want := range says {
		if !strings.Contains(a.stderr, want) {
			t.Errorf("the line does not say %q: %s", want, a.stderr)
		}
	}
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

// files are the contents of everything in the checkout and the home, by path.
func (l lab) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, dir := range []string{l.root, l.home} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
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
