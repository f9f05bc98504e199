package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/setup"
)

// The values of --cluster.
const (
	Auto     = "auto" // kind where a container engine answers, embedded elsewhere
	Kind     = "kind"
	Embedded = embedded.Identity
	Hosted   = "hosted" // one in a Pod of the kubeconfig's cluster, for one verdict; for other commands it means Auto
)

// LearnerLabel marks the clusters of learners in a classroom.
const LearnerLabel = "learner"

// Engine is the container engine's command, as kind names its providers.
func (a *App) Engine() string {
	return cmp.Or(os.Getenv("KIND_EXPERIMENTAL_PROVIDER"), "docker")
}

// PingEngine returns a [*clusters.Problem] when the container engine does not answer.
func (a *App) PingEngine(ctx context.Context) error {
	if err := engine.Ping(ctx, a.Engine()); err != nil {
		return &clusters.Problem{What: "no container engine", Reason: clusters.ErrNoEngine, Err: err}
	}
	return nil
}

// Chosen is the kind of cluster to make: that of --cluster, or what this machine can do. --yes consents to the installation of a
// container engine, so it means kind.
func (a *App) Chosen(ctx context.Context) string {
	if a.Cluster == Hosted {
		a.Notice("CLUSTER=" + a.Cluster + " is for verdicts only; this cluster is made on this machine")
		a.Cluster = Auto
	}
	if a.Cluster != Auto {
		return a.Cluster
	}
	a.Cluster = Kind
	if a.NodeImage == "" && !a.Yes && a.PingEngine(ctx) != nil && ctx.Err() == nil {
		a.Cluster = Embedded
		a.Notice("no container engine answers, so this runs on an embedded control plane: " +
			"Pods do not really run there, so checks that need them are left out (make setup brings up a container engine)")
	}
	return a.Cluster
}

// Ready gives what a run needs: the manager of this checkout's clusters, and for kind a node image. It removes clusters whose owners
// have ended. What the machine lacks for n clusters at the same time is set up first, with consent where that needs root.
func (a *App) Ready(ctx context.Context, n int) (*clusters.Manager, nodeimage.Image, error) {
	owned, err := a.Owned(Embedded)
	if err == nil {
		a.sweep(ctx, owned)
	}
	if a.Chosen(ctx) == Kind {
		return a.ReadyKind(ctx, n)
	}
	if err == nil {
		_, err = owned.Provider().(*embedded.Embedded).Programs(ctx)
	}
	return owned, nodeimage.Image{}, err
}

// ReadyKind does the same for clusters of kind.
func (a *App) ReadyKind(ctx context.Context, n int) (*clusters.Manager, nodeimage.Image, error) {
	images := memcached.NodeImage(a.Engine(), a.Cache, a.Progress)
	err := setup.Run(ctx, setup.Options{
		Root: a.Root, NodeImage: a.NodeImage, Images: images, Clusters: n, Agree: a.Agree, Out: a.Err,
	})
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	owned, err := a.Owned(Kind)
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	image, err := images.Resolve(ctx, a.NodeImage)
	if err != nil {
		return nil, image, err
	}
	a.sweep(ctx, owned)
	if image.Stale {
		a.Notice("the node image " + image.Ref + " was built from other inputs: make node-image builds a new one")
	}
	return owned, image, nil
}

// sweep removes clusters whose owners have ended. It only reports an error.
func (a *App) sweep(ctx context.Context, owned *clusters.Manager) {
	if _, err := owned.Sweep(ctx); err != nil {
		a.Notice(fmt.Sprintf("could not remove what an earlier run left: %v", err))
	}
}

// Owned gives the manager of this checkout's clusters of a provider, and sets nothing up. The provider is that of a [clusters.Record],
// [Embedded] or [Kind].
func (a *App) Owned(provider string) (*clusters.Manager, error) {
	if provider == Embedded {
		return embedded.NewManager(a.State, a.Cache, a.Progress)
	}
	return clusters.New(a.State, clusters.WithEngine(a.Engine()))
}

// Missing names the programs that the embedded control plane lacks.
func Missing(owned *clusters.Manager) []string {
	return owned.Provider().(*embedded.Embedded).Missing()
}

// Records are the records of all clusters of this checkout. With an error they are those that could be read.
func (a *App) Records(ctx context.Context) ([]clusters.Record, error) {
	owned, err := a.Owned(Kind) // every provider reads the same records
	if err != nil {
		return nil, err
	}
	return owned.List(ctx)
}

// Delete deletes the cluster of a command that ends or was interrupted, within 90 s.
func Delete(ctx context.Context, owned *clusters.Manager, cluster *clusters.Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 90*time.Second)
	defer cancel()
	return owned.Delete(ctx, cluster.Name)
}

// Spec is what a cluster is made from on this machine.
func (a *App) Spec(owned *clusters.Manager, image nodeimage.Image) clusters.Spec {
	return memcached.Spec(image, owned, a.Cache)
}
