package verdict_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestALineThatACrashCutShortIsLeftOut(t *testing.T) {
	state := t.TempDir()
	text := `{"lab":1,"verdict":"pass","workspace":"/w"}
{"lab":2,"verdict":"pass","workspace":"/other"}
{"lab":2,"verd`
	if err := os.WriteFile(filepath.Join(state, "history.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := verdict.History(state, "/w")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]verdict.Event{{Lab: 1, Verdict: verdict.Pass, Workspace: "/w"}}, events); diff != "" {
		t.Error(diff)
	}
}

func TestTheLastVerdictOfALearnerCounts(t *testing.T) {
	passed := verdict.PassedLabs([]verdict.Event{
		{Lab: 1, Verdict: verdict.Pass}, {Lab: 1, Verdict: verdict.Environment},
		{Lab: 2, Verdict: verdict.Pass}, {Lab: 2, Verdict: verdict.Fail},
		{Lab: 3, Verdict: verdict.Fail}, {Lab: 3, Verdict: verdict.Pass},
	})
	for lab, want := range map[int]bool{1: true, 2: false, 3: true} {
		if _, got := passed[lab]; got != want {
			t.Errorf("lab %d passed: %v, want %v", lab, got, want)
		}
	}
}

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	state := t.TempDir()
	if _, err := verdict.Read(state, "/w", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
	want := &verdict.Result{Schema: 1, Lab: 4, Workspace: "/w", Verdict: verdict.Fail, Checks: []verdict.Check{{ID: "x", State: verdict.Failed}}}
	if err := want.Write(state); err != nil {
		t.Fatal(err)
	}
	if _, err := verdict.Read(state, "/elsewhere/w", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading that of another workspace: %v", err)
	}
	got, err := verdict.Read(state, "/w", 4)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(verdict.Path(state, "/w", 4))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %o, want 600", mode)
	}
}

func TestALongLineEndsNoHistory(t *testing.T) {
	state := t.TempDir()
	for lab, failed := range []string{"", strings.Repeat("x", 70_000), ""} {
		r := &verdict.Result{Lab: lab + 1, Verdict: verdict.Pass, Workspace: "w", Run: fmt.Sprintf("20261127-13150%d-ABCD", lab)}
		if failed != "" {
			r.Verdict, r.Checks = verdict.Fail, []verdict.Check{{ID: failed, State: verdict.Failed}}
		}
		if err := verdict.Adopt(state, []*verdict.Result{r}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := verdict.History(state, "w")
	if len(events) != 3 || err != nil {
		t.Errorf("%d events, %v", len(events), err)
	}
}
