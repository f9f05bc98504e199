package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// learner types commands in the checkout of a small course.
type learner struct {
	*testing.T
	*app
	out *bytes.Buffer
}

func newLearner(t *testing.T) learner {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	root, out := coursetest.New(t), &bytes.Buffer{}
	return learner{t, &app{
		App:       cli.App{Root: root, State: filepath.Join(root, ".lab"), Out: out, Err: out},
		workspace: filepath.Join(root, "workspace"),
	}, out}
}

// run runs a command, and gives what it prints.
func (l learner) run(line string) (string, error) {
	l.out.Reset()
	a := &app{App: l.App}
	err := cli.Execute(l.Context(), newRootCommand(a), append([]string{"--workspace", l.workspace}, strings.Fields(line)...))
	return l.out.String(), err
}

// reads expects texts in what a command prints, in this order. A text that begins with ! must not be there.
func (l learner) reads(line string, want ...string) {
	l.Helper()
	text, err := l.run(line)
	if err != nil {
		l.Fatalf("lab %s: %v", line, err)
	}
	requireText(l.T, line, text, want...)
}

// requireText takes a line break for a space: the width of the screen decides where it is.
func requireText(t *testing.T, what, text string, want ...string) {
	t.Helper()
	space := regexp.MustCompile(`\s+`)
	text = space.ReplaceAllString(text, " ")
	rest := text
	for _, w := range want {
		w = space.ReplaceAllString(w, " ")
		if absent, isAbsent := strings.CutPrefix(w, "!"); isAbsent {
			if strings.Contains(text, absent) {
				t.Errorf("%s: %q is in\n%s", what, absent, text)
			}
			continue
		}
		_, after, found := strings.Cut(rest, w)
		if !found {
			t.Errorf("%s: %q is missing, or not in this order, in\n%s", what, w, text)
			return
		}
		rest = after
	}
}

// isRefused expects one line about wrong usage.
func (l learner) isRefused(line, says string) {
	l.Helper()
	text, err := l.run(line)
	if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		l.Errorf("lab %s: %v, want a line with %q, after\n%s", line, err, says, text)
	}
}

// judged keeps a result of the workspace.
func (l learner) judged(r verdict.Result) {
	l.Helper()
	if r.Schema = 1; r.Workspace == "" {
		r.Workspace = l.workspace
	}
	if err := r.Write(l.State); err != nil {
		l.Fatal(err)
	}
}

// passed writes a pass into the history of the workspace.
func (l learner) passed(labs string) {
	l.Helper()
	text := ""
	for _, n := range labs {
		text += `{"time":"2026-11-21T10:00:00Z","lab":` + string(n) + `,"verdict":"pass","workspace":"` + l.workspace + `"}` + "\n"
	}
	coursetest.Write(l, l.State, "history.jsonl", text)
}

func TestSolveAndResetNameUndo(t *testing.T) {
	l := newLearner(t)
	l.reads("reset 1", "Created "+l.workspace+": the starter of lab 1.\n")
	l.reads("reset 1", " is the starter of lab 1 already; nothing was changed.\n")
	coursetest.Write(t, l.workspace, "notes", "mine")
	l.reads("solve 2", " is now the solution of lab 2 (5 files changed).\n", "Your work was saved first: `make undo` brings it back.\n")
	l.reads("undo", " is again what it was before solve 2 (saved ", "`make undo` once more brings that back.\n")
	if text := coursetest.Read(t, l.workspace, "notes"); text != "mine" {
		t.Errorf("notes are %q", text)
	}
	l.isRefused("undo 1 2", "use lab undo [SAVE]")
}

func TestUndoNamesTheWorkspace(t *testing.T) {
	l := newLearner(t)
	l.workspace = filepath.Join(t.TempDir(), "mine")
	l.reads("solve 1", "Created "+l.workspace)
	l.reads("solve 3", "`make undo WORKSPACE="+l.workspace+"`")
}

func TestBadLabNumbersNameTheRange(t *testing.T) {
	l := newLearner(t)
	for _, number := range []string{"0", "4", "four", "-- -1", "1.5"} {
		for _, command := range []string{"solve ", "reset ", "watch "} {
			l.isRefused(command+number, "1 to 3")
		}
	}
	for _, path := range []string{l.workspace, l.State} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s was made", path)
		}
	}
}

func TestProgressTellsPasses(t *testing.T) {
	l := newLearner(t)
	l.passed("01")
	failed := verdict.Event{Lab: 1, Verdict: verdict.Fail, Workspace: l.workspace}
	if err := verdict.Record(l.State, failed); err != nil {
		t.Fatal(err)
	}
	l.reads("progress", "✓ lab 0", "passed 2026-11-21", "✓ lab 1", "passed 2026-11-21", "last run failed", "lab 2", "!✓ lab 2")
}

func TestDiffWaitsForAPass(t *testing.T) {
	l := newLearner(t)
	l.isRefused("diff 2", "no workspace")
	l.reads("solve 2")
	l.isRefused("diff 2", "run make lab-2 first")
	l.passed("2")
	l.reads("diff", "but for comments")
	coursetest.Write(t, l.workspace, "config/config.yaml", "spec: {}\n")
	l.reads("diff 2", "-spec: {}")
	coursetest.Write(t, l.workspace, "cmd/main.go", "packag main\n")
	l.isRefused("diff 2", "cmd/main.go:1:1")
}

func TestFormatsAreKnown(t *testing.T) {
	l := newLearner(t)
	l.isRefused("check 1 --format yaml", "FORMAT=yaml is not known: use text, json, gcc or junit")
	l.isRefused("check 0 --format gcc", "lab 0 has no FORMAT=gcc")
	l.format = verdict.GCC
	if l.answer(coursetest.Load(t, l.Root), []*verdict.Result{{Lab: 1, Verdict: verdict.Pass}}); l.out.String() != "lab 1: pass\n" {
		t.Error(l.out)
	}
}

// A mistake in the arguments is wrong usage; a classroom that does not answer is the machine's fault.
func TestJoinTellsUsageFromMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"no port":         {[]string{"127.0.0.1", "ABCD-EFGH-IJKL-MNOP", "Ana"}, exit.UsageError},
		"no name":         {[]string{"127.0.0.1:1", "ABCD-EFGH-IJKL-MNOP", " "}, exit.UsageError},
		"half a key":      {[]string{"127.0.0.1:1", "ABCD-EFGH", "Ana"}, exit.UsageError},
		"nobody is there": {[]string{"127.0.0.1:1", "abcd efgh ijkl mnop", "Ana"}, exit.EnvironmentError},
	} {
		l := newLearner(t)
		if err := cli.Execute(t.Context(), newRootCommand(l.app), append([]string{"join", "--"}, tc.args...)); exit.Code(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLessonIsThatOfTheLastVerdict(t *testing.T) {
	l := newLearner(t)
	long := strings.Repeat("word ", 20)
	coursetest.Write(t, l.Root, course.LabZero+"/README.md", "# Predict\n\n<!-- note -->\n- "+long+"\n```sh\n"+long+"\n```\n")
	l.isRefused("lesson", "make lab-1")
	l.passed("1")
	l.reads("lesson", "Say hello\n", "[the next lab](../02-name/README.md)")
	text, err := l.run("lesson 0")
	if want := "# Predict\n\n- " + strings.Repeat(" word", 15)[1:] + "\n  word word word word word\n```sh\n" + long + "\n```\n"; err != nil || text != want {
		t.Errorf("%v, %q, want %q", err, text, want)
	}
	l.isRefused("lesson 4", "1 to 3")
}
