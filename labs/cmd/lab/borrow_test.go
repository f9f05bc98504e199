package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

func TestBorrowingNeedsAHandout(t *testing.T) {
	a, _, _ := newTestApp(t)
	a.Root = coursetest.New(t)
	a.State = filepath.Join(a.Root, ".lab")
	t.Setenv(roomclient.ConfigVariable, "")
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
	for asked, want := range map[string]string{"": "CLUSTER=embedded make lab-N", "make watch-7": "CLUSTER=embedded make watch-7"} {
		command, difference := (&app{asked: asked}).instead()
		if command != want || difference != "checks that need real Pods stay open there" {
			t.Errorf("%q: %q (%s), want %q", asked, command, difference, want)
		}
	}
}
