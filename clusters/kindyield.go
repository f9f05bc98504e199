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
	// yieldPoll is how often to look for the containers that kind is making.
	yieldPoll = 100 * time.Millisecond
	// sharesTimeout bounds one request to the engine for other shares.
	sharesTimeout = 10 * time.Second
)

// yield has the nodes give way as soon as they are there, until the channel is
// closed or the returned function is called, which returns when they have
// their share again. It is a courtesy: where the engine refuses, it logs that.
func (a *attempt) yield(ctx context.Context, until <-chan struct{}) (end func()) {
	if until == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !a.giveWay(ctx, until) {
			return
		}
		select {
		case <-until:
		case <-ctx.Done():
		}
		// Whatever ended ctx, nobody wants a slow cluster.
		if err := a.setShares(context.WithoutCancel(ctx), fullShares); err != nil {
			a.logger.Warn(err.Error())
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// giveWay waits for the nodes and takes shares from them. It is false when it
// was over before.
func (a *attempt) giveWay(ctx context.Context, until <-chan struct{}) bool {
	tick := time.NewTicker(yieldPoll)
	defer tick.Stop()
	for {
		select {
		case <-until:
			return false
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if nodes, err := a.nodeNames(ctx, a.name); err != nil || len(nodes) < len(a.config.Nodes) {
			continue
		}
		if err := a.setShares(ctx, fewShares); err != nil {
			a.logger.Warn(err.Error())
			return false
		}
		return true
	}
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
