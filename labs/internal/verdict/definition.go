package verdict

import (
	"context"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/suite"
)

// installDefinition brings the learner's definition to the cluster while their manager is still being compiled: the
// API server keeps the first custom resource of a new kind waiting for 2 s. A manifest that is missing or
// refused is left to the suite, which says what is wrong with it.
func (r *run) installDefinition(ctx context.Context) error {
	if !r.runsManager() {
		return nil // such a lab may look on while its definition is installed
	}
	if !r.installedNew(ctx) || !needs(r.wanted, course.NeedsCollection) {
		return ctx.Err()
	}
	return r.Clusters.Provider().RestartControllers(ctx, r.cluster.Name)
}

// installedNew says whether a definition of Memcached was there to be installed, was taken, and is of a kind
// that the cluster has not had before.
func (r *run) installedNew(ctx context.Context) bool {
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
		definition, err := m.Definition()
		if err != nil || definition.Name != suite.CRDName {
			continue
		}
		unknown := apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(definition), definition.DeepCopy()))
		return crd.Install(ctx, api, definition) == nil && unknown
	}
	return false
}

// needs says whether a check of the labs needs the ability.
func needs(labs []*course.Lab, ability string) bool {
	return slices.ContainsFunc(labs, func(lab *course.Lab) bool {
		return slices.ContainsFunc(lab.Checks, func(c course.Check) bool { return slices.Contains(c.Needs, ability) })
	})
}
