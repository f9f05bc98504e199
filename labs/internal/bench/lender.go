package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// lender lends a cluster of a pool for one verdict, and remembers which. Its clusters are deleted when the measurement is
// over, and not beside the next one.
type lender struct {
	verdict.Pool
	lent   *clusters.Cluster
	pooled bool
	took   time.Duration            // the claim
	before map[string]time.Duration // what waiting clusters have used, by name
}

// Claim takes a cluster from the pool.
func (l *lender) Claim(ctx context.Context) (*clusters.Cluster, bool, error) {
	began := time.Now()
	c, pooled, err := l.Pool.Claim(ctx)
	l.took = time.Since(began)
	if err != nil {
		return nil, false, err
	}
	l.lent, l.pooled = c, pooled
	return c, pooled, nil
}

// Discard leaves the cluster where it is.
func (l *lender) Discard(string) {}

// usedBefore is the processor time that a cluster had used before it was lent, 0 for one that was made for the verdict.
func (l *lender) usedBefore(name string) time.Duration {
	if l == nil {
		return 0
	}
	return l.before[name]
}

// claimed measures a verdict on a cluster of the pool, and the claim. It begins and ends with the pool at rest.
func (w *Workbench) claimed(ctx context.Context, series string, judge func(context.Context, trial) (Sample, error)) (samples []Sample, err error) {
	if err := w.Pool.Rest(ctx); err != nil {
		return nil, fmt.Errorf("fill the pool: %w", err)
	}
	l := &lender{Pool: w.Pool, before: w.waiting(ctx)}
	defer func() {
		if l.lent != nil {
			remove(ctx, w.Ours, l.lent.Name, &err)
		}
		err = errors.Join(err, w.Pool.Rest(ctx))
	}()
	s, err := judge(ctx, trial{owned: w.Ours, pool: l})
	if err != nil {
		return nil, err
	}
	if !l.pooled {
		return nil, errors.New("the cluster had not been waiting in the pool")
	}
	s.Series = series
	return []Sample{s, {Series: Claim, Seconds: l.took.Seconds()}}, nil
}

// waiting is the processor time that our clusters have used so far. A paused one adds nothing to it before it is
// claimed. One that cannot be read counts as new.
func (w *Workbench) waiting(ctx context.Context) map[string]time.Duration {
	used := map[string]time.Duration{}
	owners, _ := w.Ours.List(ctx) // what cannot be read counts as new
	for _, o := range owners {
		if o.Cluster == nil {
			continue
		}
		if cpu, err := w.nodesCPU(ctx, o.Cluster); err == nil {
			used[o.Name] = cpu
		}
	}
	return used
}
