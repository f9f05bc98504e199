package verdict

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/suite"
)

// cleanupLimit is how long a run may take to delete its cluster, also after an interrupt.
const cleanupLimit = 90 * time.Second

// takeCluster gets the run its cluster. It installs the learner's definition, to save time while their manager is being compiled: the
// first custom resource of a new kind waits 2 s in the API server. Then it restarts the garbage collector, if a check needs it: that
// looks for new kinds when it starts.
func (r *run) takeCluster(ctx context.Context) error {
	if err := r.findCluster(ctx); err != nil || !r.runsManager() { // the checks of a lab without a manager may install it themselves
		return err
	}
	if !r.installDefinition(ctx) || !needs(r.wanted, course.NeedsCollection) {
		return ctx.Err()
	}
	return r.Clusters.Provider().RestartControllers(ctx, r.cluster.Name)
}

func (r *run) findCluster(ctx context.Context) (err error) {
	if r.Pool != nil {
		r.Progress("taking a fresh cluster")
		r.cluster, _, err = r.Pool.Claim(ctx)
		return err
	}
	spec := memcached.Spec(r.NodeImage, r.Clusters, r.Cache)
	spec.Label, spec.Keep = "check", r.Keep
	r.cluster, err = r.Clusters.Create(ctx, spec)
	return err
}

// installDefinition says whether it has installed a definition of a kind that was new to the cluster. A manifest that is missing or
// refused is left to the suite, which says what is wrong with it.
func (r *run) installDefinition(ctx context.Context) bool {
	manifests, err := generate.ReadManifests(filepath.Join(r.Workspace, filepath.FromSlash(suite.ManifestDir)))
	if err != nil {
		return false
	}
	config, err := r.cluster.RESTConfig()
	if err != nil {
		return false
	}
	api, err := crd.Connect(config)
	if err != nil {
		return false
	}
	for _, m := range manifests {
		if definition, err := m.Definition(); err == nil && definition.Name == suite.CRDName {
			unknown := apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(definition), definition.DeepCopy()))
			return crd.Install(ctx, api, definition) == nil && unknown
		}
	}
	return false
}

// needs says whether a check of the labs needs the ability.
func needs(labs []*course.Lab, ability string) bool {
	return slices.ContainsFunc(labs, func(lab *course.Lab) bool {
		return slices.ContainsFunc(lab.Checks, func(c course.Check) bool { return slices.Contains(c.Needs, ability) })
	})
}

// deleteCluster deletes the run's own cluster. When that fails on a machine that is at fault anyway, the record of the cluster stays,
// and the next command removes it.
func (r *run) deleteCluster(ctx context.Context, results []*Result) error {
	if r.cluster == nil || r.Keep {
		return nil
	}
	if r.Pool != nil {
		r.Pool.Discard(r.cluster.Name)
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
