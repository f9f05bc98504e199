// Package embeddedtest tests the embedded control plane with real processes. It
// needs no container engine.
package embeddedtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
)

// makeCommand is the first argument of this test binary when it plays somebody who makes a cluster; the state directory
// follows, and "true" when others may use it, too.
const makeCommand = "make"

func TestMain(m *testing.M) {
	if len(os.Args) != 4 || os.Args[1] != makeCommand {
		os.Exit(m.Run())
	}
	if err := makeCluster(os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeCluster makes a cluster, says its name, and waits for the end of its standard input.
func makeCluster(state, lease string) error {
	m, err := embedded.NewManager(state, "", nil)
	if err != nil {
		return err
	}
	var c *clusters.Cluster
	release := func(context.Context) error { return nil }
	if lease == "true" {
		c, release, err = m.Lease(context.Background(), clusters.Spec{Name: "leased"})
	} else {
		c, err = m.Create(context.Background(), clusters.Spec{})
	}
	if err != nil {
		return err
	}
	fmt.Println(c.Name)
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, release(context.Background()))
}

// manager returns one whose state is the test's own.
func manager(t *testing.T) (m *clusters.Manager, state string) {
	t.Helper()
	state = t.TempDir()
	m, err := embedded.NewManager(state, "", func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	return m, state
}

// create makes a cluster that ends with the test.
func create(t *testing.T, m *clusters.Manager, spec clusters.Spec) *clusters.Cluster {
	t.Helper()
	c, err := m.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Delete(context.WithoutCancel(t.Context()), c.Name); err != nil {
			t.Error(err)
		}
	})
	return c
}
