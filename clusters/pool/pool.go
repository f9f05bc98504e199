// Package pool keeps ready clusters that nobody has used, so that a check need not wait for one.
//
// A pool belongs to the process that runs it, and ends with it. Its clusters wait paused and take no processor
// time. Each is claimed once, used once and deleted; none ever comes back.
package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/example/operator-lab/clusters"
)

const (
	// cleanupTimeout bounds a deletion that nobody waits for.
	cleanupTimeout = 90 * time.Second
	// healthPeriod is how often the pool looks whether those that wait are still there, and whether memory is
	// short.
	healthPeriod = 10 * time.Second
	// retryDelay is the pause after a cluster could not be made. It doubles up to maxRetryDelay: an engine that
	// is away comes back, and a machine without room should be left in peace.
	retryDelay    = 5 * time.Second
	maxRetryDelay = time.Minute
	// maxAge is how old a waiting cluster may become, pauses and the sleep of a laptop included: half of the
	// grace period after which kind.yaml has a silent node declared dead.
	maxAge = 12 * time.Hour

	// enoughMemory is what has to be free, in bytes, for another cluster to be made: 0.6 GB for itself, and what
	// a check and a compilation take.
	enoughMemory = 2 << 30
	// shortMemory is the free memory in bytes below which those that wait are given up.
	shortMemory = 1 << 30
)

// Provider is what a pool needs of a provider of clusters.
type Provider interface {
	clusters.Provider
	clusters.Pauser
}

// Options say what a pool keeps.
type Options struct {
	// Size is how many clusters wait. None means that each claim makes its own.
	Size int
	// Spec is what the clusters are like.
	Spec clusters.Spec
	// Fresh says what is wrong with a cluster that has waited, and is [clusters.Fresh] by default.
	Fresh func(ctx context.Context, c *clusters.Cluster) error
	// FreeMemory is how many bytes of memory are free, and false where nobody knows. nil knows nothing, and then
	// the pool never gives one up.
	FreeMemory func() (uint64, bool)
	// Progress, if it is not nil, is told what the pool does, in one line each.
	Progress func(line string)
}

// Pool is the clusters that wait. Its methods may be called from several goroutines.
type Pool struct {
	owned    *clusters.Owned
	provider Provider
	opts     Options
	ctx      context.Context //nolint:containedctx // the life of the pool, which outlives each call
	cancel   context.CancelFunc
	tasks    sync.WaitGroup // the filler, health checks and deletions

	mu        sync.Mutex
	waiting   []*entry        // the oldest first
	claimants int             // who found nothing and waits
	left      map[string]bool // not deleted although that was tried, by name
	failure   error           // of the last creation, nil after one that worked
	failures  int
	changed   chan struct{} // closed, and replaced, whenever one of the above changes
}

// entry is one cluster of the pool.
type entry struct {
	cluster *clusters.Cluster
	// made is by the wall clock, which goes on while a laptop sleeps.
	made time.Time

	paused atomic.Bool

	mu     sync.Mutex // held while it is paused or resumed
	taken  bool
	waited bool // it was paused at least once
	broken error
}

// Start begins to fill a pool. The caller has to Close it. Clusters of a provider that cannot pause do not
// wait; each claim makes its own.
func Start(owned *clusters.Owned, opts Options) *Pool {
	p := &Pool{owned: owned, opts: opts, changed: make(chan struct{}), left: map[string]bool{}}
	if p.opts.Progress == nil {
		p.opts.Progress = func(string) {}
	}
	if p.opts.Fresh == nil {
		p.opts.Fresh = clusters.Fresh
	}
	var can bool
	if p.provider, can = owned.Provider().(Provider); !can {
		p.opts.Size = 0
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if p.opts.Size > 0 {
		p.tasks.Go(p.fill)
		p.tasks.Go(p.keepWatch)
	}
	return p
}

// Waiting is how many clusters wait, paused.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.waiting {
		if e.paused.Load() {
			n++
		}
	}
	return n
}

// Close ends the pool and deletes what waits, and what is being made or was discarded before. It returns when
// all of it is gone. What could not be removed when it was discarded is tried once more. That it stays is no error,
// as it never is one of who discards: it was told, and the next Sweep finds it.
func (p *Pool) Close() error {
	p.cancel()
	p.tasks.Wait()
	p.deleteLeft()
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	var errs []error
	for _, e := range waiting {
		errs = append(errs, p.delete(e.cluster.Name))
	}
	return errors.Join(errs...)
}

// Claim takes a cluster for good: the caller has to Discard it. pooled says that it had been waiting. When none
// waits, the next one that is ready is the caller's.
func (p *Pool) Claim(ctx context.Context) (c *clusters.Cluster, pooled bool, err error) {
	if p.opts.Size == 0 {
		c, err := p.makeClaimed(ctx)
		return c, false, err
	}
	for {
		e, err := p.next(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("claim a cluster: %w", err)
		}
		pooled, err := p.wake(ctx, e)
		if err == nil {
			return e.cluster, pooled, nil
		}
		p.Discard(e.cluster.Name)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		p.opts.Progress(fmt.Sprintf("a waiting cluster is of no use any more: %v", err))
	}
}

// makeClaimed makes a cluster for somebody, where no pool is kept.
func (p *Pool) makeClaimed(ctx context.Context) (*clusters.Cluster, error) {
	c, err := p.create(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.owned.Claim(c.Name); err != nil {
		return nil, errors.Join(err, p.delete(c.Name))
	}
	return c, nil
}

// next takes the oldest cluster that waits. Where none does it waits for one, until one could not be made.
func (p *Pool) next(ctx context.Context) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimants++
	defer func() { p.claimants-- }()
	before := p.failures
	for len(p.waiting) == 0 {
		if p.failures > before {
			return nil, p.failure
		}
		p.notify()
		if err := p.await(ctx); err != nil {
			return nil, err
		}
	}
	e := p.waiting[0]
	p.waiting = p.waiting[1:]
	p.notify()
	return e, nil
}

// notify wakes all who await a change. The caller holds the lock.
func (p *Pool) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await returns after the next change, and gives the lock away meanwhile.
func (p *Pool) await(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return errors.New("the pool is closed")
	}
}

// wake makes a cluster one that can be used, and writes down that it is.
func (p *Pool) wake(ctx context.Context, e *entry) (pooled bool, err error) {
	e.mu.Lock() // fill may be pausing it
	defer e.mu.Unlock()
	e.taken = true
	if e.broken != nil {
		return false, e.broken
	}
	if e.paused.Load() {
		if err := p.provider.Resume(ctx, e.cluster.Name); err != nil {
			return false, err
		}
		e.paused.Store(false)
	}
	if e.waited {
		if err := p.opts.Fresh(ctx, e.cluster); err != nil {
			return false, err
		}
	}
	return e.waited, p.owned.Claim(e.cluster.Name)
}

// Discard deletes a claimed cluster, in the background.
func (p *Pool) Discard(name string) {
	p.tasks.Go(func() {
		if err := p.delete(name); err != nil {
			p.opts.Progress(fmt.Sprintf("could not remove cluster %s: %v", name, err))
		}
	})
}

// delete removes a cluster. What stays, because the engine is away for a moment, is remembered.
func (p *Pool) delete(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	err := p.owned.Delete(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.left, name)
	} else {
		p.left[name] = true
	}
	return err
}

// deleteLeft tries again to remove what stayed. It was told that it could not be.
func (p *Pool) deleteLeft() {
	p.mu.Lock()
	names := slices.Collect(maps.Keys(p.left))
	p.mu.Unlock()
	for _, name := range names {
		_ = p.delete(name)
	}
}
