package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
)

func newTestApp(t *testing.T) (a *app, out, progress *bytes.Buffer) {
	t.Helper()
	shared, out, progress := clitest.New(t)
	return &app{App: *shared, workspace: filepath.Join(shared.Root, "workspace")}, out, progress
}

func TestDownLeavesClusterInUse(t *testing.T) {
	a, out, _ := newTestApp(t)
	c := clitest.Pretend(t, &a.App, "lab-4", false) // its process is this one
	if err := a.down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Left cluster "+c.Name) || len(clitest.Recorded(t, &a.App)) != 1 {
		t.Errorf("output %q, records %v, want %s left alone", out, clitest.Recorded(t, &a.App), c.Name)
	}
	if err := a.down(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if names := clitest.Recorded(t, &a.App); len(names) > 0 {
		t.Errorf("records left by down --all: %v", names)
	}
}

// The doctor and verdicts send people to make down, who do not mean their learners' clusters.
func TestDownLeavesClassroom(t *testing.T) {
	a, out, _ := newTestApp(t)
	room := clitest.Pretend(t, &a.App, cli.RoomLabel, true)
	clitest.Pretend(t, &a.App, playgroundLabel, true)
	if err := a.down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if left := clitest.Recorded(t, &a.App); len(left) != 1 || left[0] != room.Name || !strings.Contains(out.String(), "make classroom-down") {
		t.Errorf("records %v, and it prints %q", left, out)
	}
	if err := a.down(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if left := clitest.Recorded(t, &a.App); len(left) > 0 {
		t.Errorf("after --all: records %v", left)
	}
}

func TestDownGoesOnAfterFailure(t *testing.T) {
	a, _, _ := newTestApp(t)
	clitest.Pretend(t, &a.App, "up", true)
	elsewhere, err := clitest.Manager(t, &a.App, "kind/podman").Create(t.Context(), clusters.Spec{Label: "up", Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.down(t.Context(), false); err == nil || !strings.Contains(err.Error(), "kind/podman") {
		t.Errorf("down() = %v, want an error that names the other engine", err)
	}
	if names := clitest.Recorded(t, &a.App); len(names) != 1 || names[0] != elsewhere.Name {
		t.Errorf("records left: %v, want only %s", names, elsewhere.Name)
	}
}

func TestNothingRuns(t *testing.T) {
	a, out, _ := newTestApp(t)
	if err := a.down(t.Context(), false); err != nil {
		t.Error(err)
	}
	if err := a.status(t.Context()); err != nil {
		t.Error(err)
	}
	if got := out.String(); got != "Nothing was running.\nNothing is running.\n" {
		t.Errorf("output %q", got)
	}
}

func TestStatus(t *testing.T) {
	a, out, _ := newTestApp(t)
	kept, used := clitest.Pretend(t, &a.App, "up", true), clitest.Pretend(t, &a.App, "lab-4", false)
	if err := a.status(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The engine of this test has no such nodes.
	for _, want := range []string{kept.Name, used.Name, "lab-4", "kept until make down", "process ", "0 of its 1 nodes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output does not say %q:\n%s", want, out)
		}
	}
}

func TestShellNeedsCluster(t *testing.T) {
	a, _, _ := newTestApp(t)
	err := a.shell(t.Context())
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || problem.Fix != "make up" {
		t.Errorf("shell() = %v, want a *Problem that names make up", err)
	}
}

func TestShellIgnoresExitCode(t *testing.T) {
	a, out, _ := newTestApp(t)
	t.Setenv("SHELL", "/bin/sh")
	a.In = strings.NewReader("echo to $KUBECONFIG\nexit 3\n")
	if err := a.runShell("KUBECONFIG=/some/where"); err != nil {
		t.Errorf("runShell() = %v, want nil", err)
	}
	if got := out.String(); got != "to /some/where\n" {
		t.Errorf("the shell printed %q", got)
	}
}

func TestUpLocks(t *testing.T) {
	a, _, _ := newTestApp(t)
	unlock, err := a.Lock("playground", "the cluster")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := a.up(t.Context()); !errors.Is(err, cli.ErrBusy) {
		t.Errorf("a second command gives %v, want a refusal", err)
	}
}

func TestPlaygroundIsKeptClusterOfUp(t *testing.T) {
	a, _, _ := newTestApp(t)
	clitest.Pretend(t, &a.App, "lab-4", true)
	clitest.Pretend(t, &a.App, "up", false)
	if c, err := a.playground(t.Context()); err != nil || c != nil {
		t.Errorf("playground() = %v, %v, want none: one is a lab's, one was never finished", c, err)
	}
	want := clitest.Pretend(t, &a.App, "up", true)
	// The engine of this test has no such nodes.
	if c, err := a.playground(t.Context()); err == nil || c == nil || c.Name != want.Name {
		t.Errorf("playground() = %v, %v, want %s, which is not healthy", c, err, want.Name)
	}
}
