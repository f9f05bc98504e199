// Package pool makes clusters in advance, so that a check need not wait for one.
//
// A pool belongs to the process that runs it, and ends with it. Its clusters wait paused and take no processor time. Each is
// claimed once, used once and deleted.
package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/example/operator-lab/clusters"
)

const (
	// retryDelay is the pause after a cluster could not be made: an engine that is away comes back.
	retryDelay = 10 * time.Second
	// deleteTimeout bounds a deletion that nobody waits for.
	deleteTimeout = 90 * time.Second
	// wakeTime is how long a resumed cluster may take until it is healthy.
	wakeTime = 5 * time.Second
)

// Options say what a pool keeps.
type Options struct {
	// Size is how many clusters wait, one at least.
	Size int
	// Spec is what the clusters are like.
	Spec clusters.Spec
	// Progress is told what goes wrong, in one line each.
	Progress func(line string)
}

// Pool is the clusters that wait. Its methods may be called from several goroutines.
type Pool struct {
	manager *clusters.Manager
	opts    Options
	ctx     context.Context //nolint:containedctx // the life of the pool, which outlives each call
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // the fillers and deletions
	offers  chan offer     // what the fillers have
	waiting atomic.Int32   // paused clusters
	healthy func(ctx context.Context, c *clusters.Cluster) error
}

// offer is a cluster that a filler has made, or the error of a creation.
type offer struct {
	cluster *clusters.Cluster
	paused  bool
	err     error
}

// Start begins to fill a pool. The caller has to Close it.
func Start(manager *clusters.Manager, opts Options) *Pool {
	return start(manager, manager.Healthy, opts)
}

func start(manager *clusters.Manager, healthy func(context.Context, *clusters.Cluster) error, opts Options) *Pool {
	p := &Pool{manager: manager, opts: opts, offers: make(chan offer), healthy: healthy}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range opts.Size {
		p.tasks.Go(p.fill)
	}
	return p
}

// Waiting is how many clusters wait, paused.
func (p *Pool) Waiting() int { return int(p.waiting.Load()) }

// Close ends the pool and deletes what waits, what is being made, and what was discarded before. It returns when all of it
// is gone. What cannot be removed is told, and the next Sweep finds it.
func (p *Pool) Close() {
	p.cancel()
	p.tasks.Wait()
}

// fill makes one cluster after the other, and has each wait until it is claimed.
func (p *Pool) fill() {
	for p.ctx.Err() == nil {
		o := p.create()
		select {
		case p.offers <- o: // somebody waits for it
			continue
		default:
		}
		if o.err == nil {
			o.err = p.manager.Provider().Pause(p.ctx, o.cluster.Name)
		}
		var retry <-chan time.Time
		if o.err == nil {
			o.paused = true
			p.waiting.Add(1)
		} else {
			p.opts.Progress(fmt.Sprintf("could not make a cluster in advance: %v", o.err))
			retry = time.After(retryDelay)
		}
		taken := false
		select {
		case p.offers <- o:
			taken = o.err == nil
		case <-retry:
		case <-p.ctx.Done():
		}
		if o.paused {
			p.waiting.Add(-1)
		}
		if o.cluster != nil && !taken {
			p.Discard(o.cluster.Name)
		}
	}
}

func (p *Pool) create() offer {
	spec := p.opts.Spec
	spec.Label = "pool"
	spec.Name = clusters.NewName(spec.Label)
	c, err := p.manager.Create(p.ctx, spec)
	if err != nil {
		p.Discard(spec.Name) // if something is left of it
	}
	return offer{cluster: c, err: err}
}

// Claim takes a cluster for good: the caller has to Discard it. pooled says that it had been waiting. When none waits, the
// next one that is ready is the caller's.
func (p *Pool) Claim(ctx context.Context) (c *clusters.Cluster, pooled bool, err error) {
	for {
		o, err := p.next(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("claim a cluster: %w", err)
		}
		if o.paused {
			err = p.manager.Provider().Resume(ctx, o.cluster.Name)
			if err == nil {
				err = p.awaitHealthy(ctx, o.cluster)
			}
		}
		if err == nil {
			return o.cluster, o.paused, nil
		}
		p.Discard(o.cluster.Name)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		p.opts.Progress(fmt.Sprintf("cannot use a waiting cluster any more: %v", err))
	}
}

// awaitHealthy waits until a resumed cluster is healthy: its kubelet may report for a moment that it is not ready.
func (p *Pool) awaitHealthy(ctx context.Context, c *clusters.Cluster) error {
	for end := time.Now().Add(wakeTime); ; {
		err := p.healthy(ctx, c)
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next takes a cluster that waits, or the next one that is made.
func (p *Pool) next(ctx context.Context) (offer, error) {
	select {
	case o := <-p.offers:
		return o, o.err
	case <-ctx.Done():
		return offer{}, ctx.Err()
	case <-p.ctx.Done():
		return offer{}, errors.New("the pool is closed")
	}
}

// Discard deletes a claimed cluster in the background. What cannot be deleted is told, and a later Sweep finds it.
func (p *Pool) Discard(name string) {
	p.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
		defer cancel()
		if err := p.manager.Delete(ctx, name); err != nil {
			p.opts.Progress(fmt.Sprintf("could not remove cluster %s: %v", name, err))
		}
	})
}
