package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
)

// Grow makes so many clusters side by side, for each of the sizes, and tells what that costs. Each size begins without
// any. All of them are gone when it returns.
func (w *Workbench) Grow(ctx context.Context, sizes []int, tell func(Growth)) error {
	for _, n := range sizes {
		g, err := w.grow(ctx, n)
		if err != nil {
			return fmt.Errorf("make %d clusters side by side: %w", n, err)
		}
		tell(g)
	}
	return nil
}

func (w *Workbench) grow(ctx context.Context, n int) (g Growth, err error) {
	made := make([]*clusters.Cluster, n)
	defer func() {
		began := time.Now()
		err = errors.Join(err, w.removeAll(ctx, made))
		g.DeleteSeconds = time.Since(began).Seconds()
	}()
	clock, began := startWatch(), time.Now()
	side, sideCtx := errgroup.WithContext(ctx)
	for i := range made {
		side.Go(func() (err error) {
			made[i], err = w.Ours.Create(sideCtx, "bench", clusters.Spec{NodeImage: w.NodeImage.Ref}, false)
			return err
		})
	}
	if err := side.Wait(); err != nil {
		return g, err
	}
	g.Clusters, g.Seconds = n, time.Since(began).Seconds()
	var total Sample
	used, err := w.sumCPU(ctx, made)
	clock.read(&total, used, err)
	g.CoreSeconds = total.CoreSeconds
	if err := pause(ctx, w.Settle); err != nil {
		return g, err
	}
	err = w.atRest(ctx, made, &g)
	return g, err
}

// restTime is how long clusters at rest are watched: some of what they do comes once in ten seconds.
const restTime = 20 * time.Second

// atRest reads what clusters need that nobody uses.
func (w *Workbench) atRest(ctx context.Context, made []*clusters.Cluster, g *Growth) error {
	before, beforeErr := w.sumCPU(ctx, made)
	if err := pause(ctx, restTime); err != nil {
		return err
	}
	if after, err := w.sumCPU(ctx, made); err == nil && beforeErr == nil {
		g.Cores = (after - before).Seconds() / restTime.Seconds()
	}
	for _, c := range made {
		bytes, err := w.nodesMemory(ctx, c)
		if err != nil {
			return err
		}
		g.Bytes += bytes
	}
	return nil
}

func (w *Workbench) sumCPU(ctx context.Context, made []*clusters.Cluster) (total time.Duration, err error) {
	for _, c := range made {
		used, err := w.nodesCPU(ctx, c)
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// removeAll deletes clusters side by side; those that were not made are nil.
func (w *Workbench) removeAll(ctx context.Context, made []*clusters.Cluster) error {
	var side errgroup.Group
	for _, c := range made {
		if c != nil {
			side.Go(func() (err error) {
				remove(ctx, w.Ours, c.Name, &err)
				return err
			})
		}
	}
	return side.Wait()
}
