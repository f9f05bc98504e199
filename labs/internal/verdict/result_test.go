package verdict

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistoryLeavesOutBrokenLines(t *testing.T) {
	state := t.TempDir()
	text := `{"lab":1,"verdict":"pass","workspace":"/w"}
{"lab":2,"verdict":"pass","workspace":"/other"}
{"lab":2,"verd`
	if err := os.WriteFile(historyPath(state), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := History(state, "/w")
	if diff := cmp.Diff([]Event{{Lab: 1, Verdict: Pass, Workspace: "/w"}}, events); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A lab that has passed stays so, whatever its later runs say.
func TestPassedLabs(t *testing.T) {
	passed := PassedLabs([]Event{
		{Lab: 1, Verdict: Pass}, {Lab: 1, Verdict: Environment}, {Lab: 2, Verdict: Pass}, {Lab: 2, Verdict: Fail}, {Lab: 3, Verdict: Fail}, {Lab: 3, Verdict: Pass}, {Lab: 4, Verdict: Fail},
	})
	for lab, want := range map[int]bool{1: true, 2: true, 3: true, 4: false} {
		if _, got := passed[lab]; got != want {
			t.Errorf("lab %d passed: %v, want %v", lab, got, want)
		}
	}
}

func TestResultsAreKeptPerWorkspace(t *testing.T) {
	state := t.TempDir()
	want := &Result{Schema: 1, Run: "20261127-131500-ABCD", Lab: 4, Workspace: "/w", Verdict: Fail, Checks: []Check{{ID: "x", State: Failed}}}
	if err := Keep(state, []*Result{want}); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(state, "/elsewhere/w", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading that of another workspace: %v", err)
	}
	got, err := Read(state, "/w", 4)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestKeepRefusesPaths(t *testing.T) {
	if err := Keep(t.TempDir(), []*Result{{Run: "../../elsewhere"}}); err == nil {
		t.Error("Keep() took a run with the name of another folder")
	}
}

func TestWorst(t *testing.T) {
	pass, fail, environment := &Result{Verdict: Pass}, &Result{Verdict: Fail}, &Result{Verdict: Environment}
	for want, results := range map[Verdict][]*Result{Pass: {pass, pass}, Fail: {pass, fail}, Environment: {fail, environment, pass}} {
		if got := Worst(results); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
