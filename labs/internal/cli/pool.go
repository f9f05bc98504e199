package cli

import (
	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/memcached"
)

// StartPool begins to keep so many clusters ready. The caller has to close it.
func (a *App) StartPool(owned *clusters.Manager, spec clusters.Spec, size int) *pool.Pool {
	return pool.Start(owned, pool.Options{
		Size:       size,
		Spec:       spec,
		FreeMemory: doctor.FreeMemory,
		Progress:   a.Progress,
	})
}

// Spec is how a cluster is made for the user of this machine.
func (a *App) Spec(owned *clusters.Manager, image nodeimage.Image) clusters.Spec {
	return memcached.Spec(image, owned, a.Cache)
}

// SpecForOthers is how a cluster of a room is made. Its API server answers on an address of this machine, "" for loopback.
func (a *App) SpecForOthers(address string, owned *clusters.Manager, image nodeimage.Image) clusters.Spec {
	spec := a.Spec(owned, image)
	spec.APIServerAddress, spec.UntrustedAdmin = address, true
	return spec
}
