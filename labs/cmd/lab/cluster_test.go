package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func newTestApp(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	shared, out, _ := clitest.New(t)
	return &app{App: *shared, workspace: filepath.Join(shared.Root, "workspace")}, out
}

func TestDownRemovesWhatNobodyUses(t *testing.T) {
	type cluster struct {
		provider, label string
		keep            bool
	}
	for name, test := range map[string]struct {
		all   bool
		left  []cluster
		gone  []cluster
		fails string
	}{
		"every provider":    {gone: []cluster{{"kind/docker", "up", true}, {embedded.Identity, "up", true}}},
		"one in use":        {left: []cluster{{"kind/docker", "lab-4", false}}}, // its process is this one
		"one in use, --all": {all: true, gone: []cluster{{"kind/docker", "lab-4", false}}},
		"learners":          {left: []cluster{{"kind/docker", cli.LearnerLabel, true}}, gone: []cluster{{"kind/docker", "up", true}}},
		"learners, --all":   {all: true, gone: []cluster{{"kind/docker", cli.LearnerLabel, true}}},
		"another engine's":  {left: []cluster{{"kind/podman", "up", true}}, gone: []cluster{{"kind/docker", "up", true}}, fails: "kind/podman"},
		"nothing":           {},
	} {
		t.Run(name, func(t *testing.T) {
			a, out := newTestApp(t)
			create := func(all []cluster) (names []string) {
				for _, c := range all {
					made, err := clitest.Manager(t, &a.App, c.provider).Create(t.Context(), clusters.Spec{Label: c.label, Keep: c.keep})
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, made.Name)
				}
				return names
			}
			left, gone := create(test.left), create(test.gone)
			if err := a.down(t.Context(), test.all); (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("down() = %v", err)
			}
			if got := clitest.Recorded(t, &a.App); !slices.Equal(got, left) {
				t.Errorf("left are %v, want %v", got, left)
			}
			for _, name := range gone {
				requireText(t, "down", out.String(), "Removed cluster "+name)
			}
			if len(left)+len(gone) == 0 {
				requireText(t, "down", out.String(), "Nothing was running.")
			}
		})
	}
}

func TestStatus(t *testing.T) {
	a, out := newTestApp(t)
	if err := a.status(t.Context(), nil); err != nil || out.String() != "Nothing is running.\n" {
		t.Errorf("%v, %s", err, out)
	}
	kept, used := clitest.Pretend(t, &a.App, "up", true), clitest.Pretend(t, &a.App, "lab-4", false)
	clitest.Pretend(t, &a.App, cli.LearnerLabel, true)
	if err := a.status(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{kept.Name, used.Name, "lab-4", "kept until make down", "a classroom", "process "} {
		requireText(t, "status", out.String(), want)
	}
}

func TestShellNeedsCluster(t *testing.T) {
	a, _ := newTestApp(t)
	err := a.shell(t.Context(), nil)
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || problem.Fix != "make up" {
		t.Errorf("shell() = %v, want a *Problem that names make up", err)
	}
}

func TestShellIgnoresExitCode(t *testing.T) {
	a, out := newTestApp(t)
	a.In = strings.NewReader("echo to $KUBECONFIG\nexit 3\n")
	if err := a.runShell(exec.Command("/bin/sh"), a.Root, "KUBECONFIG=/some/where"); err != nil || out.String() != "to /some/where\n" {
		t.Errorf("runShell() = %v, and the shell printed %q", err, out)
	}
}

func TestUpLocks(t *testing.T) {
	a, _ := newTestApp(t)
	unlock, err := a.Lock("playground", "the cluster")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := a.up(t.Context(), nil); exit.Code(err) != exit.UsageError {
		t.Errorf("a second command gives %v, want a refusal", err)
	}
}

func TestPlaygroundIsKeptClusterOfUp(t *testing.T) {
	a, _ := newTestApp(t)
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
