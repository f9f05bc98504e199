package pool

import "context"

// Rest returns when as many clusters wait as the pool keeps, all of them paused: until the next claim the pool then
// takes nothing of the processors. It fails when a cluster cannot be made, and waits for as long as ctx lets it
// while memory is short.
func (p *Pool) Rest(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for before := p.failures; !p.atRest(); {
		if p.failures > before {
			return p.failure
		}
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// atRest says whether there is nothing to do. The caller holds the lock.
func (p *Pool) atRest() bool {
	for _, e := range p.waiting {
		if !e.paused.Load() {
			return false
		}
	}
	return len(p.waiting) >= p.opts.Size
}
