package verdict

import (
	"context"
	"time"

	"github.com/example/operator-lab/labs/internal/memcached"
)

// cleanupLimit is how long a run may take to delete its cluster, also after an interrupt.
const cleanupLimit = 90 * time.Second

// takeCluster gets the run its cluster, and makes it what the run needs.
func (r *run) takeCluster(ctx context.Context) error {
	if err := r.findCluster(ctx); err != nil {
		return err
	}
	return r.installDefinition(ctx)
}

func (r *run) findCluster(ctx context.Context) (err error) {
	switch {
	case r.Cluster != nil:
		r.cluster = r.Cluster
		return nil
	case r.Pool != nil:
		r.Progress("taking a fresh cluster")
		r.cluster, r.pooled, err = r.Pool.Claim(ctx)
		return err
	}
	r.Progress("creating a fresh cluster")
	spec := memcached.Spec(r.NodeImage, r.Clusters, r.Cache)
	spec.Label, spec.Keep = "check", r.Keep
	r.cluster, err = r.Clusters.Create(ctx, spec)
	return err
}

// deleteCluster deletes the run's own cluster. Where the machine is at fault and does not let it, the
// record of the cluster stays, and the next command removes it.
func (r *run) deleteCluster(ctx context.Context, results []*Result) error {
	switch {
	case r.cluster == nil || r.Cluster != nil:
		return nil
	case r.Pool != nil:
		r.Pool.Discard(r.cluster.Name)
		return nil
	case r.Keep:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	err := r.Clusters.Delete(ctx, r.cluster.Name)
	if err != nil && len(results) > 0 && results[0].Verdict == Environment {
		r.Progress("the cluster " + r.cluster.Name + " could not be removed now; the next command of the lab does it")
		return nil
	}
	return err
}
