package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// judged pretends that lab n of the workspace was judged, with the checks takes-name and says-name, and leaves its trace.
func judged(t *testing.T, a *app, n int, started time.Time, recording string) {
	t.Helper()
	r := &verdict.Result{
		Lab: n, Workspace: a.workspace, Verdict: verdict.Pass, Started: started, Artifacts: filepath.Join(a.State, "artifacts", "run"),
		Checks: []verdict.Check{{ID: "takes-name", Lab: n, State: verdict.Passed}, {ID: "says-name", Lab: n, State: verdict.Passed}},
	}
	if err := r.Write(a.State); err != nil {
		t.Fatal(err)
	}
	if recording != "" {
		coursetest.Write(t, r.Artifacts, trace.File, recording)
	}
}

const recording = `{"actions":[{"at":"2026-11-21T10:00:01Z","actor":"you","verb":"created","kind":"Memcached","name":"one","namespace":"lab-takes-name-abcde","object":"one"}]}
{"actions":[{"at":"2026-11-21T10:00:02Z","actor":"you","verb":"created","kind":"Memcached","name":"two","namespace":"lab-says-name-abcde","object":"two"}]}
`

func TestTraceShowsOneCheck(t *testing.T) {
	a, out := appInSmallCourse(t)
	judged(t, a, 2, time.Now(), recording)
	for _, test := range []struct {
		args       []string
		want, lack string
	}{
		{nil, "created Memcached one", "Memcached two"},
		{[]string{"2"}, "created Memcached one", "Memcached two"},
		{[]string{"2", "--check", "says-name"}, "created Memcached two", "Memcached one"},
	} {
		out.Reset()
		if err := with(newTraceCommand(a), test.args...).ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), test.want) || strings.Contains(out.String(), test.lack) || !strings.Contains(out.String(), "says-name") {
			t.Errorf("%q: want %q and not %q:\n%s", test.args, test.want, test.lack, out)
		}
	}
}

func TestTraceTakesTheLastRunWithoutANumber(t *testing.T) {
	a, out := appInSmallCourse(t)
	judged(t, a, 3, time.Now().Add(-time.Hour), recording)
	judged(t, a, 1, time.Now(), recording)
	if err := with(newTraceCommand(a)).ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "Lab 1 ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTraceOfAnotherWorkspaceIsNotShown(t *testing.T) {
	a, out := appInSmallCourse(t)
	judged(t, a, 2, time.Now(), recording)
	a.workspace = t.TempDir()
	for _, args := range [][]string{{}, {"2"}} {
		if err := with(newTraceCommand(a), args...).ExecuteContext(t.Context()); exit.Code(err) != exit.UsageError || strings.Contains(out.String(), "Memcached") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

func TestTraceSaysWhyThereIsNone(t *testing.T) {
	a, out := appInSmallCourse(t)
	judged(t, a, 1, time.Now(), "")
	if err := with(newTraceCommand(a), "1").ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "the lab runs no operator") {
		t.Errorf("%v\n%s", err, out)
	}
	judged(t, a, 2, time.Now(), recording)
	for _, args := range [][]string{{"3"}, {"4"}, {"2", "--check", "nonsense"}, {"1", "2"}} {
		if err := with(newTraceCommand(a), args...).ExecuteContext(t.Context()); exit.Code(err) != exit.UsageError {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestDiffWaitsForAPass(t *testing.T) {
	a, out := appInSmallCourse(t)
	refused := func() error {
		cmd := with(newDiffCommand(a), "2")
		return cmd.ExecuteContext(t.Context())
	}
	if err := refused(); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "no workspace") {
		t.Errorf("without a workspace: %v", err)
	}
	if err := with(newSolveCommand(a), "2").ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := refused(); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "make diff-2 FORCE=1") {
		t.Errorf("before a pass: %v", err)
	}
	out.Reset()
	if err := with(newDiffCommand(a), "2", "--force").ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "line by line") {
		t.Errorf("forced: %v, %s", err, out)
	}
	coursetest.Write(t, a.workspace, "config/config.yaml", "spec: {}\n")
	passed := `{"time":"2026-11-21T10:00:00Z","lab":2,"verdict":"pass","workspace":"` + filepath.ToSlash(a.workspace) + `"}` + "\n"
	if err := os.MkdirAll(a.State, 0o755); err != nil {
		t.Fatal(err)
	}
	coursetest.Write(t, a.State, "history.jsonl", passed)
	out.Reset()
	if err := refused(); err != nil || !strings.Contains(out.String(), "-spec: {}") {
		t.Errorf("after a pass: %v\n%s", err, out)
	}
}
