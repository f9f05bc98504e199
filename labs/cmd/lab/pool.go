package main

import (
	"context"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
)

// startPool begins to keep so many clusters ready. The caller has to close it.
func (a *app) startPool(owned *clusters.Owned, image nodeimage.Image, size int) *pool.Pool {
	return pool.Start(owned, pool.Options{
		Size: size,
		Spec: clusters.Spec{NodeImage: image.Ref},
		Prepare: func(ctx context.Context, c *clusters.Cluster) error {
			if !c.RealPods {
				return nil
			}
			return nodeimage.EnsureOperand(ctx, owned.Provider(), c.Name, image, a.cache)
		},
		FreeMemory: doctor.FreeMemory,
		Progress:   a.progress,
	})
}
