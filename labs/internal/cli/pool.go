package cli

import (
	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/memcached"
)

// poolMemory is what has to be free, in bytes, for a cluster that waits: 0.6 GB for itself, and what a check and a compilation
// take.
const poolMemory = 2 << 30

// StartPool begins to keep so many clusters ready, none where memory is short. The caller has to close it.
func (a *App) StartPool(owned *clusters.Manager, spec clusters.Spec, size int) *pool.Pool {
	if free, known := doctor.FreeMemory(); known && free < poolMemory && size > 0 {
		a.Progress("memory is short, so no cluster is made in advance: close other programs and begin again")
		size = 0
	}
	return pool.Start(owned, pool.Options{Size: size, Spec: spec, Progress: a.Progress})
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
