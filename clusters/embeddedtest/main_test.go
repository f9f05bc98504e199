package embeddedtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/contract"
	"github.com/example/operator-lab/clusters/embedded"
)

// makeCommand is the first argument of this test binary when it plays somebody who makes a cluster; the state directory
// follows, and "keep" when the cluster shall stay.
const makeCommand = "make"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime's client complains that nobody did
	if len(os.Args) != 4 || os.Args[1] != makeCommand {
		os.Exit(m.Run())
	}
	if err := makeCluster(os.Args[2], os.Args[3] == "keep"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeCluster makes a cluster, says its name, and waits for the end of its standard input.
func makeCluster(state string, keep bool) error {
	m, err := newManager(state, nil)
	if err != nil {
		return err
	}
	c, err := m.Create(context.Background(), clusters.Spec{Keep: keep})
	if err != nil {
		return err
	}
	fmt.Println(c.Name)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// newManager keeps its programs where everybody does.
func newManager(state string, log func(string)) (*clusters.Manager, error) {
	cache, err := components.CacheDir()
	if err != nil {
		return nil, err
	}
	provider, err := embedded.New(state, cache, log)
	if err != nil {
		return nil, err
	}
	return clusters.New(state, clusters.WithProvider(provider))
}

// manager returns one whose state is the test's own.
func manager(t *testing.T) (m *clusters.Manager, state string) {
	t.Helper()
	state = t.TempDir()
	m, err := newManager(state, func(line string) { t.Log(line) })
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

func TestContract(t *testing.T) {
	m, _ := manager(t)
	contract.Test(t, m.Provider(), clusters.Spec{Workers: 1})
}
