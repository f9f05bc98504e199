package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestWatchStartsAtFirstLabNotPassed(t *testing.T) {
	l := newLearner(t)
	for passed, want := range map[string]int{"": 1, "1": 2, "12": 3, "123": 3} { // when all are passed, the last
		l.passed(passed)
		if _, labs, err := l.labs("all"); err != nil || labs[len(labs)-1] != want {
			t.Errorf("labs %v, %v after %q, want lab %d", labs, err, passed, want)
		}
	}
}

func TestWatchRefusesBadInput(t *testing.T) {
	l := newLearner(t)
	l.isRefused("watch 1 2", "use lab watch [N]")
	l.workspace = filepath.Join(l.Root, "labs", "course.yaml")
	l.isRefused("watch 1", "is a file")
}

// Somebody saves, and interrupts.
func TestWatchJudgesEachSave(t *testing.T) {
	l, shown := newHintedLearner(t), gbytes.NewBuffer()
	l.Out, l.Err = shown, shown
	shows := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			gomega.NewWithT(t).Eventually(shown).WithTimeout(time.Minute).Should(gbytes.Say("%s", regexp.QuoteMeta(text)))
		}
	}
	coursetest.Write(t, l.workspace, "main.go", "package main")
	c, err := l.Course()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	over := make(chan error, 1)
	judge := func(_ context.Context, lab int, answered func(*verdict.Result)) error {
		r := &verdict.Result{Lab: lab, Verdict: verdict.Fail, Checks: []verdict.Check{failure("greets", "silent")}}
		if _, err := os.Stat(filepath.Join(l.workspace, "greeting.go")); err == nil {
			r.Verdict, r.Checks[0].State = verdict.Pass, verdict.Passed
		}
		answered(r)
		return nil
	}
	go func() { over <- l.follow(ctx, c, 1, judge) }()
	shows("· lab 1 ─", "fail: 1 of 1", "waiting for a save")
	coursetest.Write(t, l.workspace, "greeting.go", "package main")
	shows("lab 1 ─", "pass: all 1 check", "Next: labs/02-", "waiting for a save")
	interrupt()
	if err := <-over; exit.Code(err) != exit.Interrupted {
		t.Errorf("an interrupt ends with %v", err)
	}
}
