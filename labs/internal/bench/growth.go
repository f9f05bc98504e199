package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
)

// Crowd is clusters of one sort that stand side by side, first a few of them and then more.
type Crowd struct {
	// On says in the table what they are.
	On    string
	Owned *clusters.Owned
	Spec  clusters.Spec
	// Counts are how many there are, one number after the other, each beginning without any.
	Counts []int
	// AtOnce is how many are made at a time, 0 for all.
	AtOnce int
	// Rest is how long the last of Counts is left alone, in place of the workbench's Settle.
	Rest time.Duration
	// Free is what the machine has left: memory and disk.
	Free func(context.Context) map[doctor.Resource]doctor.Supply
}

// Grow makes clusters side by side, and tells what each number of them costs. All of them are gone when it returns.
// It counts what the machine has less of, so that the engine's own part is in it, and nothing else may run. A number
// that the machine does not bear is a failure, and the others go on; the error is that of ctx.
func (w *Workbench) Grow(ctx context.Context, crowds []Crowd, tell func(Growth)) (failures []Failure, err error) {
	for _, crowd := range crowds {
		for i, n := range crowd.Counts {
			rest := w.Settle
			if i == len(crowd.Counts)-1 && crowd.Rest > 0 {
				rest = crowd.Rest
			}
			g, err := crowd.grow(ctx, n, rest)
			switch {
			case err == nil:
				tell(g)
			case ctx.Err() != nil:
				return failures, fmt.Errorf("make %d clusters side by side: %w", n, err)
			default:
				failures = append(failures, NewFailure(fmt.Sprintf("%d %s", n, crowd.On), 1, err))
			}
		}
	}
	return failures, nil
}

func (c *Crowd) grow(ctx context.Context, n int, rest time.Duration) (g Growth, err error) {
	made := make([]*clusters.Cluster, n)
	defer func() {
		began := time.Now()
		err = errors.Join(err, c.removeAll(ctx, made))
		g.DeleteSeconds = time.Since(began).Seconds()
	}()
	g = Growth{On: c.On, Clusters: n, RestSeconds: rest.Seconds()}
	free, clock, began := c.Free(ctx), startWatch(), time.Now()
	if err := c.make(ctx, made); err != nil {
		return g, err
	}
	g.Seconds = time.Since(began).Seconds()
	g.CoreSeconds = clock.wholeMachine()
	if err := pause(ctx, rest); err != nil {
		return g, err
	}
	clock = startWatch()
	if err := pause(ctx, restTime); err != nil {
		return g, err
	}
	g.Cores = clock.wholeMachine() / restTime.Seconds()
	left := c.Free(ctx)
	g.Bytes, g.DiskBytes = less(free, left, doctor.Memory), less(free, left, doctor.Disk)
	for _, one := range made {
		if clusters.Healthy(ctx, c.Owned.Provider(), one) == nil {
			g.Healthy++
		}
	}
	return g, ctx.Err()
}

// restTime is how long clusters at rest are watched: some of what they do comes once in ten seconds.
const restTime = 20 * time.Second

// make fills made with clusters.
func (c *Crowd) make(ctx context.Context, made []*clusters.Cluster) error {
	side, ctx := errgroup.WithContext(ctx)
	side.SetLimit(len(made))
	if c.AtOnce > 0 {
		side.SetLimit(c.AtOnce)
	}
	for i := range made {
		side.Go(func() (err error) {
			made[i], err = c.Owned.Create(ctx, "bench", c.Spec, false)
			return err
		})
	}
	return side.Wait()
}

// less is how much less there is of a resource, 0 where it is not known.
func less(before, after map[doctor.Resource]doctor.Supply, of doctor.Resource) uint64 {
	if before[of].Amount < after[of].Amount {
		return 0
	}
	return before[of].Amount - after[of].Amount
}

// removeAll deletes clusters side by side; those that were not made are nil.
func (c *Crowd) removeAll(ctx context.Context, made []*clusters.Cluster) error {
	var side errgroup.Group
	for _, one := range made {
		if one != nil {
			side.Go(func() (err error) {
				remove(ctx, c.Owned, one.Name, &err)
				return err
			})
		}
	}
	return side.Wait()
}
