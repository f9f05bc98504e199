package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestWatchStartsAtTheFirstLabNotPassed(t *testing.T) {
	a, _ := appInSmallCourse(t)
	passed := func(lab int) string {
		return `{"lab":` + string(rune('0'+lab)) + `,"verdict":"pass","workspace":"` + a.workspace + `"}` + "\n"
	}
	history := ""
	for _, want := range []int{1, 2, 3, 3} { // when all are passed, the last
		coursetest.Write(t, a.Root, ".lab/history.jsonl", history)
		if _, n, err := a.watched(nil); err != nil || n != want {
			t.Errorf("lab %d, %v after %q, want lab %d", n, err, history, want)
		}
		history += passed(want)
	}
	if _, n, err := a.watched([]string{"2"}); err != nil || n != 2 {
		t.Errorf("lab %d, %v where lab 2 is asked for", n, err)
	}
}

func TestWatchRefusesBadInput(t *testing.T) {
	for says, args := range map[string][]string{
		"1 to 3": {"4"}, "2 arguments": {"1", "2"}, "POOL=-1": {"--pool=-1"}, "is a file": {"1"},
	} {
		a, _ := appInSmallCourse(t)
		if says == "is a file" {
			a.workspace = filepath.Join(a.Root, "labs", "course.yaml")
		}
		cmd := with(newWatchCommand(a), args...)
		err := cmd.ExecuteContext(t.Context())
		if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), says) {
			t.Errorf("watch %v: %v", args, err)
		}
		if _, err := os.Lstat(a.State); !os.IsNotExist(err) {
			t.Errorf("watch %v left something in .lab", args)
		}
	}
}

func TestWatchWaitsForTheLock(t *testing.T) {
	a, progress := appInSmallCourse(t)
	unlock, err := a.lock()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(3*lockPeriod-lockPeriod/2, unlock)
		begun := time.Now()
		again, err := a.lockWhenFree(t.Context())
		if took := time.Since(begun); err != nil || took != 3*lockPeriod {
			t.Fatalf("it has the lock (%v) after %s", err, took)
		}
		defer again()
		if text := progress.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "another lab command") {
			t.Errorf("%q is not one line about it", text)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.lockWhenFree(ctx); !errors.Is(err, context.Canceled) {
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

// screen is what a session has shown, for a reader beside it.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// until waits for texts, in this order, and forgets what stands before the end of the last.
func (s *screen) until(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for end := time.Now().Add(time.Minute); !s.skip(text); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the screen lacks %q:\n%s", text, &s.text)
			}
		}
	}
}

func (s *screen) skip(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := bytes.Index(s.text.Bytes(), []byte(text))
	if i >= 0 {
		s.text.Next(i + len(text))
	}
	return i >= 0
}

// A person at a terminal saves, types lines, and interrupts.
func TestWatchAtATerminal(t *testing.T) {
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	a, _ := hintedCourse(t)
	shown := &screen{}
	a.In, a.Out, a.Err = program, shown, shown
	coursetest.Write(t, a.workspace, "main.go", "package main")
	c, err := a.Course()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- a.follow(ctx, c, 1, a.wants("greeting.go")) }()
	typed := func(line string) {
		t.Helper()
		if _, err := person.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	shown.until(t, "· lab 1 ─", "fail: 1 of 1", "from start to verdict", "(quit) and Enter\n")
	typed("h")
	shown.until(t, "1. listen", "2. a voice says something", "waiting for a save")
	coursetest.Write(t, a.workspace, "greeting.go", "package main")
	shown.until(t, "lab 1 · greeting.go ─", "pass: all 1 check", "Next: labs/02-", "from save to verdict", "(quit) and Enter\n")
	typed("n")
	shown.until(t, "· lab 2 ─", "(quit) and Enter\n")
	interrupt()
	if err := <-over; exit.Code(err) != exit.Interrupted {
		t.Errorf("an interrupt ends with %v", err)
	}
}
