package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/example/operator-lab/clusters"
)

// Purpose is that of the clusters' records.
const Purpose = "pool"

// fill makes one cluster after the other, as long as some are missing.
func (p *Pool) fill() {
	delay := retryDelay
	for p.ctx.Err() == nil {
		idle, err := p.step()
		switch {
		case err != nil && p.ctx.Err() == nil:
			p.opts.Progress(err.Error())
			p.pause(delay)
			delay = min(2*delay, maxRetryDelay)
		case idle:
			p.pause(healthPeriod)
		default:
			delay = retryDelay
		}
	}
}

// step does the next thing that there is to do; idle says that there was nothing.
func (p *Pool) step() (idle bool, err error) {
	if awake := p.awake(); len(awake) > 0 {
		if err := p.putToSleep(awake[0]); err != nil {
			return false, fmt.Errorf("could not pause a waiting cluster: %w", err)
		}
		return false, nil
	}
	if !p.wanted() {
		return true, nil
	}
	if err := p.add(); err != nil {
		return false, fmt.Errorf("could not make a cluster: %w", err)
	}
	return false, nil
}

// pause waits for a while, or until something has changed.
func (p *Pool) pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(p.ctx, d)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.await(ctx) // that the time is over is no error
}

// wanted says whether to make a cluster: always for somebody who waits for it, and for the pool while there is
// memory for it.
func (p *Pool) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	missing := p.opts.Size + p.claimants - len(p.waiting)
	return p.claimants > len(p.waiting) || missing > 0 && p.memory(enoughMemory)
}

// memory says whether so much memory is free, as far as that is known.
func (p *Pool) memory(enough uint64) bool {
	if p.opts.FreeMemory == nil {
		return true
	}
	free, known := p.opts.FreeMemory()
	return !known || free >= enough
}

// add makes a cluster, which whoever waits for one may take.
func (p *Pool) add() error {
	c, err := p.create(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.notify()
	if p.failure = err; err != nil {
		p.failures++
		return err
	}
	p.waiting = append(p.waiting, &entry{cluster: c, made: time.Now().Round(0)})
	return nil
}

// awake are the clusters that nobody wants at the moment and that still run.
func (p *Pool) awake() []*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claimants > 0 {
		return nil // somebody is about to take one
	}
	return slices.DeleteFunc(slices.Clone(p.waiting), func(e *entry) bool { return e.paused.Load() })
}

// putToSleep pauses a cluster, unless somebody takes it. One that cannot be paused leaves the pool.
func (p *Pool) putToSleep(e *entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken {
		return nil
	}
	e.broken = p.provider.Pause(p.ctx, e.cluster.Name)
	e.paused.Store(e.broken == nil)
	e.waited = true
	if e.broken != nil && p.remove(e) {
		p.Discard(e.cluster.Name)
	}
	return e.broken
}

// remove takes an entry out of those that wait, and says whether it was there.
func (p *Pool) remove(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, e)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.notify()
	}
	return i >= 0
}

// create makes a cluster that is ready for use.
func (p *Pool) create(ctx context.Context) (*clusters.Cluster, error) {
	name := clusters.NewName(Purpose)
	c, err := p.owned.CreateNamed(ctx, name, Purpose, p.opts.Spec, false)
	if err != nil {
		p.rememberLeft(name)
		return nil, err
	}
	return c, nil
}

// rememberLeft remembers a cluster whose creation failed, and that is still recorded: what there is of it could not be
// deleted either.
func (p *Pool) rememberLeft(name string) {
	owners, _ := p.owned.List(context.Background()) // those that can be read
	if !slices.ContainsFunc(owners, func(o clusters.Owner) bool { return o.Name == name }) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[name] = true
}

// keepWatch gives up those that are gone or too old, and one after the other while memory is short. It removes what
// could not be removed before.
func (p *Pool) keepWatch() {
	tick := time.NewTicker(healthPeriod)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		for _, e := range p.useless() {
			p.Discard(e.cluster.Name)
		}
		p.deleteLeft()
	}
}

// useless takes those out of the pool that should not wait any longer.
func (p *Pool) useless() []*entry {
	there, err := p.provider.List(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*entry
	p.waiting = slices.DeleteFunc(p.waiting, func(e *entry) bool {
		gone := err == nil && !slices.Contains(there, e.cluster.Name)
		if gone || time.Since(e.made) > maxAge {
			out = append(out, e)
			return true
		}
		return false
	})
	if len(p.waiting) > 0 && !p.memory(shortMemory) {
		p.opts.Progress("memory is short: giving up a waiting cluster")
		out, p.waiting = append(out, p.waiting[0]), p.waiting[1:]
	}
	if len(out) > 0 {
		p.notify()
	}
	return out
}
