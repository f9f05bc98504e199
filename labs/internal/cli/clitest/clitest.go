// Package clitest has what tests of commands share: a checkout without clusters, and records of clusters that do not exist.
package clitest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
)

// New is an app whose container engine is a script that knows no cluster.
func New(t *testing.T) (a *cli.App, out, progress *bytes.Buffer) {
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
	return &cli.App{
		Root: root, State: filepath.Join(root, ".lab"), Cache: t.TempDir(), Cluster: cli.Auto,
		In: strings.NewReader(""), Out: out, Err: progress,
	}, out, progress
}

// provider makes no clusters, and reports those that have a record.
type provider struct {
	clusters.Provider
	identity string
	records  string // their folder
}

// Manager only records the clusters that it should make, in the app's state, with the provider's identity, such as "kind/docker".
func Manager(t *testing.T, a *cli.App, identity string) *clusters.Manager {
	t.Helper()
	m, err := clusters.New(a.State, clusters.WithProvider(provider{identity: identity, records: filepath.Join(a.State, "clusters")}))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (p provider) Identity() string { return p.identity }

func (provider) Create(_ context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	return &clusters.Cluster{Name: name, Version: "v1.36.3", Kubeconfig: "/nowhere", Nodes: 1}, nil
}

func (provider) Delete(context.Context, string) error { return nil }

func (p provider) List(context.Context) (names []string, _ error) {
	folders, _ := os.ReadDir(p.records) // there is none before the first record
	for _, folder := range folders {
		names = append(names, folder.Name())
	}
	return names, nil
}

func (provider) Keep(context.Context, string) error { return nil }

// Pretend records a cluster of kind as if it had been made.
func Pretend(t *testing.T, a *cli.App, label string, keep bool) *clusters.Cluster {
	t.Helper()
	c, err := Manager(t, a, "kind/docker").Create(t.Context(), clusters.Spec{Label: label, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Recorded are the names of the clusters that have a record.
func Recorded(t *testing.T, a *cli.App) []string {
	t.Helper()
	owners, err := a.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, owner := range owners {
		names = append(names, owner.Name)
	}
	return names
}
