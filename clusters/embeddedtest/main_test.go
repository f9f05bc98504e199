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
	"github.com/example/operator-lab/clusters/embedded"
)

// makeCommand is the first argument of this test binary when it plays somebody who makes a cluster; the state
// directory follows, and "keep" when the cluster shall stay.
const makeCommand = "make"

// TestMain lets this test binary be what its tests start: the supervisor of a cluster, and a maker of clusters.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else envtest complains that nobody did
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == embedded.SuperviseCommand:
		err = embedded.Supervise(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == makeCommand:
		err = makeCluster(os.Args[2], os.Args[3] == "keep")
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeCluster makes a cluster, says its name, and waits for the end of its standard input.
func makeCluster(state string, keep bool) error {
	e, err := provider(state)
	if err != nil {
		return err
	}
	c, err := clusters.NewOwned(state, e).Create(context.Background(), "test", clusters.Spec{}, keep)
	if err != nil {
		return err
	}
	fmt.Println(c.Name)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// provider keeps its programs where everybody does.
func provider(state string, opts ...embedded.Option) (*embedded.Embedded, error) {
	cache, err := clusters.CacheDir()
	if err != nil {
		return nil, err
	}
	return embedded.New(state, cache, opts...)
}

// newProvider returns a provider whose state is the test's own.
func newProvider(t testing.TB, opts ...embedded.Option) (e *embedded.Embedded, state string) {
	t.Helper()
	state = t.TempDir()
	e, err := provider(state, append(opts, embedded.WithLogger(func(line string) { t.Log(line) }))...)
	if err != nil {
		t.Fatal(err)
	}
	return e, state
}
