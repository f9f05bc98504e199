package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/outbox"
)

func TestBorrowingNeedsAHandout(t *testing.T) {
	a, _, _ := newTestApp(t)
	a.Root = coursetest.New(t)
	a.State = filepath.Join(a.Root, ".lab")
	t.Setenv(outbox.ConfigVariable, "")
	err := cli.Execute(t.Context(), newRootCommand(a), []string{"--cluster", "room", "check", "1"})
	if exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
		t.Fatalf("without a handout: %v", err)
	}
	if !strings.Contains(err.Error(), "env.sh") || !strings.Contains(err.Error(), "CLUSTER=auto") {
		t.Errorf("without a handout: %v", err)
	}
	err = cli.Execute(t.Context(), newRootCommand(a), []string{"--cluster", "room", "check", "1", "--keep"})
	if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "KEEP=1") {
		t.Errorf("to keep a borrowed one: %v", err)
	}
}

// What is no verdict is done on this machine.
func TestTheRoomLendsForVerdictsOnly(t *testing.T) {
	a, _, progress := newTestApp(t)
	a.Cluster = cli.Room
	if got := a.Chosen(t.Context()); got != cli.Kind || !strings.Contains(progress.String(), "for verdicts only") {
		t.Errorf("chosen() = %s, and says %q", got, progress)
	}
}

func TestWhoWaitsIsOfferedWhatAnswersAtOnce(t *testing.T) {
	c := coursetest.Load(t, "../../..")
	all := 0
	for _, lab := range c.Labs {
		for _, check := range lab.Checks {
			all += len(check.Needs) - len(withoutPods(check.Needs))
		}
	}
	for _, tc := range []struct {
		asks                judging
		command, difference string
	}{
		{judging{}, "CLUSTER=embedded make lab-N", ""},
		{judging{"make lab-1", c, []int{1}}, "CLUSTER=embedded make lab-1", "all its checks run there, too"},
		{judging{"make watch-7", c, []int{7}}, "CLUSTER=embedded make watch-7", strconv.Itoa(all) + " checks need real Pods, and stay open there"},
	} {
		a := &app{judges: tc.asks}
		if command, difference := a.instead(); command != tc.command || difference != tc.difference {
			t.Errorf("%v: %q, %q", tc.asks.labs, command, difference)
		}
	}
}

func withoutPods(needs []string) (rest []string) {
	for _, need := range needs {
		if need != course.NeedsPods {
			rest = append(rest, need)
		}
	}
	return rest
}
