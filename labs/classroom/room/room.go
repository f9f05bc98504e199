// Package room keeps many clusters of one owner side by side: one under each of the names that it is given.
//
// What is missing is made and what is broken is fixed; a cluster that works is never touched. One that cannot be
// made is tried once more when the others have had their turn, and then told of; it stops nobody else. The clusters
// outlive the process that made them.
package room

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
)

const (
	// lookTimeout bounds the look at one cluster: one that hangs should not hold up a list.
	lookTimeout = 20 * time.Second
	// looksAtOnce is how many clusters are looked at side by side. A look is a handful of requests.
	looksAtOnce = 8
)

// Options say what the clusters of a room are like.
type Options struct {
	// Purpose is that of the clusters' records; their names are drawn with [clusters.NewName] of it.
	Purpose string
	// Spec is what new clusters are like.
	Spec clusters.Spec
	// Limit is how many are made or fixed at once; 0 means [Limit].
	Limit int
	// Healthy says what is wrong with a cluster, and is [clusters.Healthy] by default.
	Healthy func(ctx context.Context, p clusters.Provider, c *clusters.Cluster) error
	// Progress, if it is not nil, is told of each step with each cluster, one at a time. err is why: what was wrong
	// with the cluster, or why the step failed.
	Progress func(name string, step Step, err error)
}

// Room is the clusters of one owner. Several calls at once work on clusters of different names only.
type Room struct {
	owned *clusters.Owned
	opts  Options

	mu sync.Mutex // held while Progress is told
}

// New gives the room whose clusters owned records.
func New(owned *clusters.Owned, opts Options) *Room {
	if opts.Limit <= 0 {
		opts.Limit = Limit()
	}
	if opts.Healthy == nil {
		opts.Healthy = clusters.Healthy
	}
	return &Room{owned: owned, opts: opts}
}

// Limit is how many clusters this machine can start at once: one per core that this process may use, and one at least.
//
// kind gives the systemd of a new node 30 s to come up (docker/provision.go) and then fails, however well it was
// going. It takes 2 to 4 s where it has a core to itself, and five at once on two cores were seen to be at the edge of
// it. More at once would not be faster either: what a start waits for is mostly the processor.
func Limit() int { return max(1, runtime.GOMAXPROCS(0)) }

// State is how a cluster was found.
type State string

// The states of a cluster.
const (
	// Missing: there is no such cluster, or what is left of one that was never finished.
	Missing State = "missing"
	// Making: another process is making it right now.
	Making State = "being made"
	// Healthy: it works.
	Healthy State = "healthy"
	// Stopped: its machines do not run.
	Stopped State = "stopped"
	// Broken: its machines run, or nobody can tell, and it does not work.
	Broken State = "broken"
)

// Cluster is one of the room's, as [Room.Look] found it.
type Cluster struct {
	Name  string
	State State
	// Owner is its record, nil when there is none.
	Owner *clusters.Owner
	// Err is what is wrong with one that is Stopped or Broken.
	Err error
}

// Look looks at the clusters of those names, and tells of them in that order. The error says that the records could
// not be read, or the provider does not answer; then nothing is known about any of them.
func (r *Room) Look(ctx context.Context, names []string) ([]Cluster, error) {
	if _, err := r.owned.Provider().List(ctx); err != nil {
		return nil, err
	}
	owners, err := r.owned.List(ctx)
	if err != nil {
		return nil, err
	}
	records := map[string]*clusters.Owner{}
	for i := range owners {
		records[owners[i].Name] = &owners[i]
	}
	found := make([]Cluster, len(names))
	var g errgroup.Group
	g.SetLimit(looksAtOnce)
	for i, name := range names {
		g.Go(func() error {
			found[i] = r.inspect(ctx, name, records[name])
			return nil
		})
	}
	_ = g.Wait() // what is wrong with a cluster is in what was found
	return found, ctx.Err()
}

func (r *Room) inspect(ctx context.Context, name string, owner *clusters.Owner) Cluster {
	c := Cluster{Name: name, State: Missing, Owner: owner}
	switch {
	case owner == nil:
		return c
	case owner.Cluster == nil || !owner.Kept:
		if owner.Alive() {
			c.State = Making
		}
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if c.Err = r.opts.Healthy(ctx, r.owned.Provider(), owner.Cluster); c.Err == nil {
		c.State = Healthy
		return c
	}
	c.State = Broken
	if running, _ := r.machines(ctx, owner.Cluster); !running {
		c.State = Stopped
	}
	return c
}

// machines says whether the machines of a cluster run, and whether one of them has no disk space left. Where the
// provider cannot tell, they do.
func (r *Room) machines(ctx context.Context, c *clusters.Cluster) (running, full bool) {
	inspector, ok := r.owned.Provider().(clusters.NodeInspector)
	if !ok {
		return true, false
	}
	nodes, err := inspector.Nodes(ctx, c.Name)
	if err != nil {
		return true, false
	}
	running = len(nodes) > 0
	for _, node := range nodes {
		running = running && node.Running
		full = full || node.LowOnDisk()
	}
	return running, full
}

// Down removes the clusters of those names, and tells of each. What cannot be removed is part of the error and stays
// recorded.
func (r *Room) Down(ctx context.Context, names []string) error {
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(r.opts.Limit)
	for i, name := range names {
		g.Go(func() error {
			if errs[i] = r.owned.Delete(ctx, name); errs[i] != nil {
				r.report(name, Failed, errs[i])
			} else {
				r.report(name, Removed, nil)
			}
			return nil
		})
	}
	_ = g.Wait() // errs has them all
	return errors.Join(errs...)
}

func (r *Room) report(name string, step Step, err error) {
	if r.opts.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opts.Progress(name, step, err)
}

// errBusy says that somebody else is at work with a cluster.
func errBusy(owner *clusters.Owner) error {
	return fmt.Errorf("process %d is making it", owner.PID)
}
