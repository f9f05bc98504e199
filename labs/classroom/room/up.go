package room

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
)

const (
	// grace is for how long a cluster whose machines run may look broken before anything is done to it: one that is
	// booting, or whose machine is busy with others, answers late.
	grace = time.Minute
	// comeback is what a cluster may take from its restart until it is healthy, before what is in it is given up.
	// Twenty that boot at once, as after a restart of the engine, want fifteen core-seconds each, and may have two cores.
	comeback = 5 * time.Minute
	// lookAgain is how often to ask meanwhile. What makes a cluster healthy (engine, services, kubelets) cannot all be
	// watched.
	lookAgain = time.Second
)

// Step is something that happens to a cluster, or has happened to it.
type Step string

// The steps under way.
const (
	Creating   Step = "creating"
	Restarting Step = "restarting"
	Replacing  Step = "replacing"
	Retrying   Step = "retrying" // later, because it failed
)

// The steps that are the last ones.
const (
	// Untouched: it worked, or does so again without any help.
	Untouched Step = "untouched"
	Created   Step = "created"
	// Restarted: its machines were started again, with all that was in the cluster.
	Restarted Step = "restarted"
	// Replaced: it is a new one of the same name, and what was in the old one is lost.
	Replaced Step = "replaced"
	Removed  Step = "removed"
	// Failed: there is none, or a broken one.
	Failed Step = "failed"
)

// Result is what became of one cluster.
type Result struct {
	Name string
	// Step is the last one: Untouched, Created, Restarted, Replaced or Failed.
	Step Step
	// Cluster is nil when Step is Failed.
	Cluster *clusters.Cluster
	// Err is why it failed.
	Err error
}

// Up makes and fixes what [Room.Look] found wanting, and returns in the same order what became of each. When ctx ends,
// what is being made is removed, what is being fixed stays as it is, and what is ready stays.
func (r *Room) Up(ctx context.Context, found []Cluster) []Result {
	results := make([]Result, len(found))
	for _, again := range []bool{false, true} {
		var g errgroup.Group
		g.SetLimit(r.opts.Limit)
		for i, c := range found {
			if again && results[i].Step != Failed {
				continue
			}
			g.Go(func() error {
				results[i] = r.ensure(ctx, c, again)
				return nil
			})
		}
		_ = g.Wait() // the results have all errors
	}
	return results
}

// ensure is one try to have a cluster that works; again says that it is not the first.
func (r *Room) ensure(ctx context.Context, c Cluster, again bool) Result {
	if err := ctx.Err(); err != nil {
		return Result{Name: c.Name, Step: Failed, Err: err}
	}
	now := c
	if again {
		now = r.inspectOnce(ctx, c)
	}
	made, step, err := r.attempt(ctx, now)
	if err != nil {
		r.reportFailure(ctx, c.Name, err, again)
		return Result{Name: c.Name, Step: Failed, Err: err}
	}
	if step == Created && c.State != Missing {
		step = Replaced // the first try got as far as removing the old one
	}
	r.report(c.Name, step, nil)
	return Result{Name: c.Name, Step: step, Cluster: made}
}

// reportFailure tells of a try that failed, unless that was what somebody wanted.
func (r *Room) reportFailure(ctx context.Context, name string, err error, again bool) {
	switch {
	case ctx.Err() != nil:
	case again:
		r.report(name, Failed, err)
	default:
		r.report(name, Retrying, err)
	}
}

// inspectOnce looks again at a cluster with which something was tried.
func (r *Room) inspectOnce(ctx context.Context, c Cluster) Cluster {
	found, err := r.Look(ctx, []string{c.Name})
	if err != nil {
		return c
	}
	return found[0]
}

// attempt returns the cluster and what was done.
func (r *Room) attempt(ctx context.Context, c Cluster) (*clusters.Cluster, Step, error) {
	switch c.State {
	case Healthy:
		return c.Owner.Cluster, Untouched, nil
	case Making:
		return nil, Failed, errBusy(c.Owner)
	case Missing:
		r.report(c.Name, Creating, nil)
		made, err := r.create(ctx, c)
		return made, Created, err
	}
	return r.fix(ctx, c)
}

// create makes a cluster in the place of whatever is recorded under its name.
func (r *Room) create(ctx context.Context, c Cluster) (*clusters.Cluster, error) {
	if c.Owner != nil {
		if err := r.owned.Delete(ctx, c.Name); err != nil {
			return nil, err
		}
	}
	return r.owned.CreateNamed(ctx, c.Name, r.opts.Purpose, r.opts.Spec, true)
}

// fix does the least that makes a cluster work: it waits, starts its machines again, and only then makes a new one.
func (r *Room) fix(ctx context.Context, c Cluster) (*clusters.Cluster, Step, error) {
	known := c.Owner.Cluster
	running, full := r.machines(ctx, known)
	if full {
		return nil, Failed, c.Err // a new one would have no more space
	}
	if running && r.await(ctx, known, grace) == nil {
		return known, Untouched, nil
	}
	if ctx.Err() != nil {
		return nil, Failed, ctx.Err()
	}
	r.report(c.Name, Restarting, c.Err)
	err := r.owned.Restart(ctx, c.Name)
	if err == nil {
		err = r.await(ctx, known, comeback)
	}
	if err == nil {
		return known, Restarted, nil
	}
	if lost := r.provider(ctx); lost != nil {
		return nil, Failed, lost
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = c.Err // nothing was tried
	}
	r.report(c.Name, Replacing, err)
	made, err := r.create(ctx, c)
	return made, Replaced, err
}

// provider is an error when nobody can say anything about clusters now, and so least of all that one is beyond repair.
func (r *Room) provider(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := r.owned.Provider().List(ctx)
	return err
}

// await returns nil as soon as the cluster is healthy, and what is wrong with it when the time is over.
func (r *Room) await(ctx context.Context, c *clusters.Cluster, within time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	var last error
	for {
		err := r.opts.Healthy(waiting, r.owned.Provider(), c)
		if err == nil {
			return nil
		}
		if last == nil || waiting.Err() == nil {
			last = err // and not that the time was over
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
			return fmt.Errorf("not healthy within %v: %w", within, last)
		}
	}
}
