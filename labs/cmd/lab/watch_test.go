package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
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

func TestWatchWaitsForTheLock(t *testing.T) {
	l := newLearner(t)
	unlock, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(3*lockPeriod-lockPeriod/2, unlock)
		begun := time.Now()
		again, err := l.lockWhenFree(t.Context())
		if took := time.Since(begun); err != nil || took != 3*lockPeriod {
			t.Fatalf("it has the lock (%v) after %s", err, took)
		}
		defer again()
		if text := l.out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "another lab command") {
			t.Errorf("%q is not one line about it", text)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.lockWhenFree(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting without end: %v", err)
		}
	})
}

// wants judges a lab: the workspace has to hold a file.
func (a *app) wants(file string) func(context.Context, int, func(*verdict.Result)) error {
	return func(_ context.Context, lab int, answered func(*verdict.Result)) error {
		r := &verdict.Result{Schema: 1, Lab: lab, Workspace: a.workspace, Verdict: verdict.Pass, Cluster: verdict.Cluster{Provider: "kind"},
			Checks: []verdict.Check{failure("greets", "silent")}}
		r.Checks[0].State = verdict.Passed
		if _, err := os.Stat(filepath.Join(a.workspace, file)); err != nil {
			r.Verdict, r.Checks[0].State = verdict.Fail, verdict.Failed
		}
		if err := r.Write(a.State); err != nil {
			return err
		}
		answered(r)
		return nil
	}
}

// A person at a terminal saves, types lines, and interrupts.
func TestWatchAtTerminal(t *testing.T) {
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	l, shown := newHintedLearner(t), gbytes.NewBuffer()
	l.In, l.Out, l.Err = program, shown, shown
	shows := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			gomega.NewWithT(t).Eventually(shown).WithTimeout(time.Minute).Should(gbytes.Say("%s", regexp.QuoteMeta(text)))
		}
	}
	types := func(line string) {
		t.Helper()
		if _, err := person.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	coursetest.Write(t, l.workspace, "main.go", "package main")
	c, err := l.Course()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- l.follow(ctx, c, 1, l.wants("greeting.go")) }()
	shows("· lab 1 ─", "fail: 1 of 1", "s to verdict", "(quit) and Enter\n")
	types("h")
	shows("1. listen", "2. a voice says something", "waiting for a save")
	coursetest.Write(t, l.workspace, "greeting.go", "package main")
	shows("lab 1 · greeting.go ─", "pass: all 1 check", "Next: labs/02-", "s to verdict", "(quit) and Enter\n")
	types("n")
	shows("· lab 2 ─", "(quit) and Enter\n")
	interrupt()
	if err := <-over; exit.Code(err) != exit.Interrupted {
		t.Errorf("an interrupt ends with %v", err)
	}
}
