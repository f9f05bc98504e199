package cli

import (
	"context"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
)

// StartPool begins to keep so many clusters ready. The caller has to close it.
func (a *App) StartPool(owned *clusters.Owned, image nodeimage.Image, size int) *pool.Pool {
	return a.StartPoolAt("", owned, image, size)
}

// StartPoolAt does so with clusters whose API servers answer on an address of this machine, "" for loopback.
func (a *App) StartPoolAt(address string, owned *clusters.Owned, image nodeimage.Image, size int) *pool.Pool {
	return pool.Start(owned, pool.Options{
		Size:       size,
		Spec:       a.Spec(address, owned, image),
		FreeMemory: doctor.FreeMemory,
		Progress:   a.Progress,
	})
}

// Spec is what a cluster is like whose API server answers on an address of this machine, "" for loopback.
func (a *App) Spec(address string, owned *clusters.Owned, image nodeimage.Image) clusters.Spec {
	return clusters.Spec{NodeImage: image.Ref, APIServerAddress: address, Prepare: a.WithOperand(owned, image)}
}

// WithOperand sees to it that a new cluster has the operand's image, where its Pods would need one. Those of the room
// have it.
func (a *App) WithOperand(owned *clusters.Owned, image nodeimage.Image) func(context.Context, *clusters.Cluster) error {
	return func(ctx context.Context, c *clusters.Cluster) error {
		if !c.RealPods || a.Cluster == Room {
			return nil
		}
		return nodeimage.EnsureOperand(ctx, owned.Provider(), c.Name, image, a.Cache)
	}
}
