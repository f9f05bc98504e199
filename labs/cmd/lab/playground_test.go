package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

// standIn plays the provider of this checkout's clusters, without any.
type standIn struct{ identity string }

func (s standIn) Identity() string { return s.identity }
func (s standIn) Create(_ context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	return &clusters.Cluster{Name: name, Version: "v1.36.3", Kubeconfig: "/nowhere", Nodes: 1}, nil
}
func (s standIn) Delete(context.Context, string) error                   { return nil }
func (s standIn) List(context.Context) ([]string, error)                 { return nil, nil }
func (s standIn) LoadImageArchive(context.Context, string, string) error { return nil }
func (s standIn) CollectLogs(context.Context, string, string) error      { return nil }

// newTestApp is an app whose container engine is a script that knows no cluster.
func newTestApp(t *testing.T) (a *app, out, progress *bytes.Buffer) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	t.Setenv("KIND_EXPERIMENTAL_PROVIDER", "")
	out, progress = &bytes.Buffer{}, &bytes.Buffer{}
	root := t.TempDir()
	return &app{
		root: root, state: filepath.Join(root, ".lab"), cache: t.TempDir(), workspace: filepath.Join(root, "workspace"),
		cluster: "auto", in: strings.NewReader(""), out: out, err: progress,
	}, out, progress
}

// pretend records a cluster as if it had been made.
func pretend(t *testing.T, a *app, purpose string, keep bool) *clusters.Cluster {
	t.Helper()
	c, err := clusters.NewOwned(a.state, standIn{"kind/docker"}).Create(t.Context(), purpose, clusters.Spec{}, keep)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func recorded(t *testing.T, a *app) []string {
	t.Helper()
	owners, err := a.owners(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, owner := range owners {
		names = append(names, owner.Name)
	}
	return names
}

func TestDownRemovesWhatIsKeptAndSaysSo(t *testing.T) {
	a, out, _ := newTestApp(t)
	c := pretend(t, a, "up", true)
	if err := a.down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Removed cluster "+c.Name) {
		t.Errorf("output %q does not name %s", out, c.Name)
	}
	if names := recorded(t, a); len(names) > 0 {
		t.Errorf("records left: %v", names)
	}
}

func TestDownLeavesAClusterThatIsInUse(t *testing.T) {
	a, out, _ := newTestApp(t)
	c := pretend(t, a, "lab-4", false) // its process is this one
	if err := a.down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Left cluster "+c.Name) || len(recorded(t, a)) != 1 {
		t.Errorf("output %q, records %v, want %s left alone", out, recorded(t, a), c.Name)
	}
	if err := a.down(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if names := recorded(t, a); len(names) > 0 {
		t.Errorf("records left by down --all: %v", names)
	}
}

func TestDownReportsWhatItCannotRemoveAndGoesOn(t *testing.T) {
	a, _, _ := newTestApp(t)
	pretend(t, a, "up", true)
	elsewhere, err := clusters.NewOwned(a.state, standIn{"kind/podman"}).Create(t.Context(), "up", clusters.Spec{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.down(t.Context(), false); err == nil || !strings.Contains(err.Error(), "kind/podman") {
		t.Errorf("down() = %v, want an error that names the other engine", err)
	}
	if names := recorded(t, a); len(names) != 1 || names[0] != elsewhere.Name {
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

func TestStatusTellsWhatRunsAndHowItIs(t *testing.T) {
	a, out, _ := newTestApp(t)
	kept, used := pretend(t, a, "up", true), pretend(t, a, "lab-4", false)
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

func TestShellNeedsACluster(t *testing.T) {
	a, _, _ := newTestApp(t)
	err := a.shell(t.Context(), nil)
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || problem.Mend != "make up" {
		t.Errorf("shell() = %v, want a *Problem that names make up", err)
	}
}

func TestTheShellsLastCommandIsNobodysFailure(t *testing.T) {
	a, out, _ := newTestApp(t)
	t.Setenv("SHELL", "/bin/sh")
	a.in = strings.NewReader("echo to $KUBECONFIG\nexit 3\n")
	if err := a.runShell([]string{"KUBECONFIG=/some/where"}); err != nil {
		t.Errorf("runShell() = %v, want nil", err)
	}
	if got := out.String(); got != "to /some/where\n" {
		t.Errorf("the shell printed %q", got)
	}
}

func TestOnlyOneUpAtATime(t *testing.T) {
	a, _, _ := newTestApp(t)
	unlock, err := a.lockPlayground()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.lockPlayground(); err == nil {
		t.Error("two commands hold the playground")
	}
	unlock()
	again, err := a.lockPlayground()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestThePlaygroundIsTheKeptClusterOfUp(t *testing.T) {
	a, _, _ := newTestApp(t)
	pretend(t, a, "lab-4", true)
	pretend(t, a, "up", false)
	if c, err := a.playground(t.Context()); err != nil || c != nil {
		t.Errorf("playground() = %v, %v, want none: one is a lab's, one was never finished", c, err)
	}
	want := pretend(t, a, "up", true)
	if c, err := a.playground(t.Context()); err != nil || c == nil || c.Name != want.Name {
		t.Errorf("playground() = %v, %v, want %s", c, err, want.Name)
	}
}

func TestTheDoctorKnowsTheCheckoutsGo(t *testing.T) {
	root := t.TempDir()
	if got := goVersion(root); got != "" {
		t.Errorf("goVersion() = %q without a go.mod", got)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := goVersion(root); got != "1.26.0" {
		t.Errorf("goVersion() = %q, want 1.26.0", got)
	}
}
