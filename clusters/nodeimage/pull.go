package nodeimage

import (
	"context"
	"fmt"
	"time"
)

const (
	// pullTimeout bounds a pull of about 400 MB over a slow line.
	pullTimeout = 15 * time.Minute
	// reportPeriod is how often a pull says that it goes on. How far it is, engines tell terminals only.
	reportPeriod = 10 * time.Second
	// hesitation is how long a pull may take before it is told of: an image that nobody has is refused sooner, and
	// then the refusal says all.
	hesitation = 3 * time.Second
)

// obtain inspects an image and pulls it first when it is not here. It returns nil when it cannot be pulled.
func (r Resolver) obtain(ctx context.Context, ref string) (*inspection, error) {
	e := engine(r.Engine)
	found, err := e.inspect(ctx, ref)
	if err != nil || found != nil {
		return found, err
	}
	pullCtx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	defer r.follow(pullCtx, ref)()
	if _, err := e.run(pullCtx, nil, "pull", "--quiet", ref); err != nil {
		return nil, ctx.Err()
	}
	return e.inspect(ctx, ref)
}

// follow says that an image is being pulled, and now and then for how long already, until stop is called.
func (r Resolver) follow(ctx context.Context, ref string) (stop func()) {
	if r.Log == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.report(ctx, ref)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// report tells of a pull until ctx ends.
func (r Resolver) report(ctx context.Context, ref string) {
	first, period, begun := hesitation, reportPeriod, time.Now()
	if r.period > 0 {
		first, period = r.period, r.period
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	for told := false; ; told = true {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if !told {
			r.Log("pulling " + ref + ": node images have about 400 MB, which take one minute at 50 Mbit/s and five at 10")
		} else {
			r.Log(fmt.Sprintf("still pulling %s after %s; after %s it is given up", ref, time.Since(begun).Round(time.Second), pullTimeout))
		}
		timer.Reset(period)
	}
}
