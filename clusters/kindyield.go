package clusters

import (
	"context"
	"fmt"
	"time"
)

const (
	// fullShares is what a container gets of the processors by default, as a
	// weight beside all others; fewShares is a tenth of it.
	fullShares, fewShares = 1024, 102
	// yieldPoll is how often to ask whether to yield.
	yieldPoll = 200 * time.Millisecond
	// sharesTimeout bounds one request to the engine for other shares.
	sharesTimeout = 10 * time.Second
)

// yield has the nodes give way whenever yields says so, from when they are
// there until the returned function is called; when that returns they have
// their share again. It is a courtesy: where the engine refuses, it logs that.
func (a *attempt) yield(ctx context.Context, yields func() bool) (end func()) {
	if yields == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.giveWay(ctx, yields); err != nil {
			a.logger.Warn(err.Error())
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// giveWay returns why the nodes never gave way although they should have.
func (a *attempt) giveWay(ctx context.Context, yields func() bool) (lacking error) {
	tick := time.NewTicker(yieldPoll)
	defer tick.Stop()
	for yielding := false; ; {
		select {
		case <-ctx.Done():
			if !yielding {
				return lacking
			}
			return a.setShares(context.WithoutCancel(ctx), fullShares) // nobody wants a slow cluster
		case <-tick.C:
		}
		wanted := yields()
		if wanted == yielding || !a.complete(ctx) {
			continue
		}
		shares := fullShares
		if wanted {
			shares = fewShares
		}
		// Engines refuse this for a container that is just being started.
		if err := a.setShares(ctx, shares); err != nil {
			if ctx.Err() == nil {
				lacking = err
			}
			continue
		}
		yielding, lacking = wanted, nil
	}
}

// complete says whether kind has made the containers of all nodes.
func (a *attempt) complete(ctx context.Context) bool {
	nodes, err := a.nodeNames(ctx, a.name)
	return err == nil && len(nodes) == len(a.config.Nodes)
}

func (a *attempt) setShares(ctx context.Context, shares int) error {
	ctx, cancel := context.WithTimeout(ctx, sharesTimeout)
	defer cancel()
	nodes, err := a.nodeNames(ctx, a.name)
	if err == nil && len(nodes) > 0 {
		_, err = runEngine(ctx, a.engine, append([]string{"update", "--cpu-shares", fmt.Sprint(shares)}, nodes...)...)
	}
	if err != nil {
		return fmt.Errorf("set the processor shares of cluster %s: %w", a.name, err)
	}
	return nil
}
