// Package clustertest gives a Go test a Kubernetes cluster of its own. A suite of Ginkgo has one for all its processes:
//
//	var _ = BeforeSuite(func() { cluster = clustertest.New(GinkgoTB(), clustertest.Shared("my-suite")) })
package clustertest

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
)

// Cluster is a cluster that is ready, and the client configuration of its admin.
type Cluster struct {
	*clusters.Cluster
	Config *rest.Config
	// Manager made the cluster, and can load images into it.
	Manager *clusters.Manager
}

// Option changes what [New] makes.
type Option func(*settings)

type settings struct {
	spec     clusters.Spec
	shared   string
	embedded bool
}

// Spec says what kind of cluster is wanted. By default it is one node, with a name of its own. Its image is pulled when it
// is not on this machine.
func Spec(spec clusters.Spec) Option { return func(s *settings) { s.spec = spec } }

// Embedded makes the cluster of processes, without a container engine. The first time takes minutes: its programs are
// downloaded or compiled, which needs Go.
func Embedded() Option { return func(s *settings) { s.embedded = true } }

// Shared is for a cluster that tests of several processes use at once: packages, or the processes of Ginkgo. Who asks for
// name first makes it, and the last one to end deletes it.
func Shared(name string) Option { return func(s *settings) { s.shared = name } }

// timeout is for the deletion of a cluster, which takes a few seconds.
const timeout = 2 * time.Minute

// New makes a cluster for a test and deletes it when the test ends. What a killed test leaves, the next one of the same user
// deletes. When there can be no cluster, the test fails.
//
// With KEEP=failed in the environment, the cluster of a test that failed stays. The test's log has the commands to look at it
// and to remove it.
func New(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	var s settings
	for _, opt := range opts {
		opt(&s)
	}
	c, release, err := s.create(tb)
	if err != nil {
		tb.Fatalf("clustertest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if tb.Failed() && os.Getenv("KEEP") == "failed" {
			err = c.keep(ctx, tb)
		} else {
			err = release(ctx)
		}
		if err != nil {
			tb.Errorf("clustertest: %v", err)
		}
	})
	if c.Config, err = c.RESTConfig(); err != nil {
		tb.Fatalf("clustertest: %v", err)
	}
	return c
}

func (s *settings) create(tb testing.TB) (c *Cluster, release func(context.Context) error, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, err
	}
	// All tests of a user have the same folder: there New finds what a killed test left.
	dir := filepath.Join(cache, "clustertest")
	var created atomic.Bool
	defer created.Store(true)
	log := func(line string) {
		if !created.Load() { // a test that has ended must not log
			tb.Log(line)
		}
	}
	c = &Cluster{}
	if s.embedded {
		c.Manager, err = embedded.NewManager(dir, "", log)
	} else {
		c.Manager, err = clusters.New(dir, clusters.WithPull(), clusters.WithLogger(log))
	}
	if err != nil {
		return nil, nil, err
	}
	if s.shared != "" {
		s.spec.Name = s.shared
		c.Cluster, release, err = c.Manager.Lease(tb.Context(), s.spec)
		return c, release, err
	}
	c.Cluster, err = c.Manager.Create(tb.Context(), s.spec)
	return c, func(ctx context.Context) error { return c.Manager.Delete(ctx, c.Name) }, err
}

// keep lets the cluster stay, and says what a person can do with it.
func (c *Cluster) keep(ctx context.Context, tb testing.TB) error {
	if err := c.Manager.Keep(ctx, c.Name); err != nil {
		return err
	}
	_, remove := c.Manager.Provider().Commands(c.Name)
	tb.Logf("look at cluster %s: kubectl --kubeconfig=%s get all -A", c.Name, c.Kubeconfig)
	tb.Logf("remove it: %s; rm -rf '%s'", remove, filepath.Dir(c.Kubeconfig))
	return nil
}
