package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/cka"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/practice"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// newCandidate practises the tasks of this checkout, in a state of their own.
func newCandidate(t *testing.T) learner {
	t.Helper()
	l := newLearner(t)
	l.Root, _ = filepath.Abs(filepath.Join("..", "..", ".."))
	return l
}

// attempted remembers an attempt of task 3.
func (l learner) attempted(attempt practice.Attempt) {
	l.Helper()
	p, err := practice.Load(l.Root, l.State, cka.Programs())
	if err != nil {
		l.Fatal(err)
	}
	for _, t := range p.Tasks {
		if t.Name == "cka-3" {
			t.Attempt = attempt
			if err := t.Save(); err != nil {
				l.Fatal(err)
			}
		}
	}
}

func TestTasksAreListed(t *testing.T) {
	l := newCandidate(t)
	l.reads("cka", "  cka-2", "Manage role based access control", "  cka-3", "of the 27 objectives", "no objective in full", "Storage", "of 3", "10 % of the exam")
	l.attempted(practice.Attempt{Passed: time.Now(), Took: 61 * time.Second})
	l.reads("cka", "✓ cka-3", "in 1m1s")
}

func TestWrongTaskNamesThoseThatAre(t *testing.T) {
	l := newCandidate(t)
	for _, line := range []string{"cka 0", "cka x", "cka cka-03", "hint cka-99", "reset cka-", "solution 1.5"} {
		l.isRefused(line, "use one of 1, 2, 3, ")
	}
	l.isRefused("cka 1 2", "lab cka [N]")
	l.isRefused("solve cka-3", "not a lab")
	coursetest.Write(t, l.State, "cka-3/attempt.json", "{\n")
	l.isRefused("cka", "remove "+filepath.Join(l.State, "cka-3"))
}

// The verdict gave the first.
func TestTaskHints(t *testing.T) {
	l := newCandidate(t)
	l.isRefused("hint cka-3", "make cka-3")
	failed := verdict.Check{ID: "refuses", Title: "It is refused", State: verdict.Failed, Cause: "not-required", Seen: "it is accepted"}
	l.attempted(practice.Attempt{Layers: 1, Result: &verdict.Result{Lab: -3, Verdict: verdict.Fail, Checks: []verdict.Check{failed}}})
	l.reads("hint cka-3", "It is refused", "1. An object", "2. `required", "That was all", "make solution-cka-3 FORCE=1", "https://kubernetes.io/docs/")
	l.attempted(practice.Attempt{Result: &verdict.Result{Lab: -3, Verdict: verdict.Pass}})
	l.isRefused("hint cka-3", "nothing failed")
}

func TestSolutionWaitsForAPass(t *testing.T) {
	l := newCandidate(t)
	l.isRefused("solution cka-3", "make solution-cka-3 FORCE=1")
	l.reads("solution 3 --yes", "solution-manifest", "required: [schedule]", "solution-patch", "# Step by step", "!{{")
	l.attempted(practice.Attempt{Passed: time.Now()})
	l.reads("solution cka-3", "solution-patch")
}

// A cluster that does not answer is no failure of the candidate.
func TestTaskWithoutClusterIsNotJudged(t *testing.T) {
	l := newCandidate(t)
	clitest.Pretend(t, &l.App, "cka-3", true)
	l.attempted(practice.Attempt{Seed: 5, Started: time.Now()})
	coursetest.Write(t, l.State, roomclient.ConfigFile, `{"address": "127.0.0.1:1", "key": "ABCD-EFGH-IJKL-MNOP"}`)
	text, err := l.run("cka 3")
	if !errors.Is(err, exit.ErrTold) {
		t.Errorf("%v\n%s", err, text)
	}
	requireText(t, "cka 3", text, "cka-3  Write a", "seed 5", "make reset-cka-3")
	if left := clitest.Recorded(t, &l.App); len(left) != 1 {
		t.Errorf("the cluster is gone: %v", left)
	}
	if waiting, _ := filepath.Glob(filepath.Join(l.State, "outbox", "*-lab--03.json")); len(waiting) != 1 {
		t.Errorf("for the board of the classroom there are %v", waiting)
	}
}
