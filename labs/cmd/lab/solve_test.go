package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// appInSmallCourse is an app in the checkout of a small course, and what it has reported.
func appInSmallCourse(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	root, out := coursetest.New(t), &bytes.Buffer{}
	return &app{
		App:       cli.App{Root: root, State: filepath.Join(root, ".lab"), Out: out, Err: out},
		workspace: filepath.Join(root, "workspace"),
	}, out
}

// says runs a command and expects its report, without what differs from run to run.
func says(t *testing.T, out *bytes.Buffer, cmd *cobra.Command, want ...string) {
	t.Helper()
	out.Reset()
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, line := range want {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q lacks %q", out, line)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 2 {
		t.Errorf("%d lines: %q", lines, out)
	}
}

// with is the command with arguments, and without what cobra prints about errors.
func with(cmd *cobra.Command, args ...string) *cobra.Command {
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd
}

func TestSolveAndResetSayHowToUndoThem(t *testing.T) {
	a, out := appInSmallCourse(t)
	says(t, out, with(newResetCommand(a), "1"), "Created workspace/: the starter of lab 1.\n")
	says(t, out, with(newResetCommand(a), "1"), "workspace/ is the starter of lab 1 already; nothing was changed.\n")
	coursetest.Write(t, a.workspace, "notes", "mine")
	says(t, out, with(newSolveCommand(a), "2"),
		"workspace/ is now the solution of lab 2 (5 files changed).\n", "Your work was saved first: `make undo` brings it back.\n")
	says(t, out, with(newUndoCommand(a)), "workspace/ is again what it was before solve 2 (saved ", "`make undo` once more brings that back.\n")
	if text, err := os.ReadFile(filepath.Join(a.workspace, "notes")); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestRemovedSavesAreMentioned(t *testing.T) {
	a, out := appInSmallCourse(t)
	a.printRemoved(2)
	if !strings.Contains(out.String(), "oldest 2 saves") {
		t.Error(out)
	}
}

func TestUndoNamesTheWorkspace(t *testing.T) {
	a, out := appInSmallCourse(t)
	a.workspace = filepath.Join(t.TempDir(), "mine")
	says(t, out, with(newSolveCommand(a), "1"), "Created "+a.workspace)
	says(t, out, with(newSolveCommand(a), "3"), "`make undo WORKSPACE="+a.workspace+"`")
}

func TestBadLabNumbersNameTheRange(t *testing.T) {
	for _, arg := range []string{"0", "4", "99", "four", "-1", "1.5", ""} {
		a, _ := appInSmallCourse(t)
		for _, cmd := range []*cobra.Command{newSolveCommand(a), newResetCommand(a)} {
			err := with(cmd, "--", arg).ExecuteContext(t.Context())
			if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "1 to 3") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %q: %v", cmd.Name(), arg, err)
			}
			if _, err := os.Lstat(a.workspace); !os.IsNotExist(err) {
				t.Errorf("%s %q made a workspace", cmd.Name(), arg)
			}
		}
	}
}
