package main

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// newHintedLearner has a course whose first lab has a check with several causes.
func newHintedLearner(t *testing.T) learner {
	t.Helper()
	l := newLearner(t)
	coursetest.Write(t, l.Root, "labs/01-hello/lab.yaml", `title: Say hello
checks:
- id: says-hello
  title: It says hello
  hints:
    other: [think]
- id: greets
  title: It greets
  hints:
    silent: [listen, a voice says something, look at main.go]
    manager-exited: [it ended, why]
    other: [think]
`)
	return l
}

func failure(id, cause string) verdict.Check {
	return verdict.Check{ID: id, Title: "It says hello", Lab: 1, State: verdict.Failed, Cause: cause, Seen: "silence"}
}

func (l learner) failed(checks ...verdict.Check) {
	l.Helper()
	l.judged(verdict.Result{Lab: 1, Verdict: verdict.Fail, Checks: checks})
}

// The verdict gave the first. Another check with the same failure takes nothing back; a failure of another cause begins anew.
func TestHintTellsNextLayer(t *testing.T) {
	l := newHintedLearner(t)
	for _, step := range []struct {
		cause string
		want  []string
	}{
		{"silent", []string{"It says hello", "silence", "1. listen", "2. a voice", "`make hint-1` again", "!3. "}},
		{"silent", []string{"1. listen", "2. a voice", "3. look at main.go", "That was all", "`make solve-1`"}},
		{"silent", []string{"3. look at main.go", "That was all"}},
		{"nobody-thought-of-it", []string{"1. think", "That was all", "!listen"}},
		{"silent", []string{"1. listen", "2. a voice", "!3. "}},
	} {
		l.failed(failure("greets", step.cause))
		l.reads("hint 1", step.want...)
	}
}

func TestHintIsAboutTheFirstFailure(t *testing.T) {
	l := newHintedLearner(t)
	l.failed(verdict.Check{ID: "says-hello", Title: "Not this one", Lab: 1, State: verdict.Failed, Cause: "other"}, failure("greets", "manager-exited"))
	l.reads("hint 1", "It says hello", "1. it ended", "!Not this one")
}

func TestHintsWithoutAFailure(t *testing.T) {
	for want, result := range map[string]verdict.Result{
		"Nothing failed": {Verdict: verdict.Pass},
		"no disk\nWhat fixes it: make doctor": {Verdict: verdict.Environment, Checks: []verdict.Check{failure("greets", "silent")},
			Environment: verdict.Finding{Finding: "no disk", Fix: "make doctor"}},
		"cmd/main.go:1:2": {Verdict: verdict.Fail, Build: &verdict.Build{Output: "cmd/main.go:1:2: undefined: x"}},
	} {
		l := newHintedLearner(t)
		result.Lab = 1
		l.judged(result)
		l.reads("hint 1", want, "!listen")
	}
}

func TestHintIsAboutThisWorkspace(t *testing.T) {
	l := newHintedLearner(t)
	l.failed(failure("greets", "silent"))
	l.reads("hint 1", "2. a voice", "!3. ")
	other := l
	other.app = &app{App: l.App, workspace: "/elsewhere/workspace"}
	other.isRefused("hint 1", "make lab-1 WORKSPACE=/elsewhere")
	other.failed(failure("greets", "silent"))
	other.reads("hint 1", "2. a voice", "!3. ")
	l.reads("hint 1", "3. look")
}

func TestHintIsAboutTheLastVerdict(t *testing.T) {
	l := newHintedLearner(t)
	l.isRefused("hint", "make lab-1")
	l.failed(failure("greets", "silent"))
	l.passed("10") // lab 0 has no hints
	l.reads("hint", "2. a voice")
}
