package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/memcached"
)

// The values of --cluster.
const (
	Auto     = "auto" // kind where a container engine answers, embedded elsewhere
	Kind     = "kind"
	Embedded = "embedded"
	Hosted   = "hosted" // one in a Pod of the cluster of the kubeconfig, for one verdict; for everything else auto
)

// RoomLabel marks the clusters of a classroom among those of the checkout.
const RoomLabel = "classroom"

// Engine is the container engine's command, as kind names its providers.
func (a *App) Engine() string {
	if e := os.Getenv("KIND_EXPERIMENTAL_PROVIDER"); e != "" {
		return e
	}
	return "docker"
}

// PingEngine is a *clusters.Problem when the container engine does not answer.
func (a *App) PingEngine(ctx context.Context) error {
	if err := engine.Ping(ctx, a.Engine()); err != nil {
		return &clusters.Problem{What: "no container engine", Reason: clusters.ErrNoEngine, Err: err}
	}
	return nil
}

// Chosen is the kind of cluster to make: that of --cluster, or what this machine can do. Who has agreed beforehand
// to what a container engine takes gets one, and kind.
func (a *App) Chosen(ctx context.Context) string {
	if a.Cluster == Hosted {
		a.Progress("CLUSTER=" + a.Cluster + " is for verdicts only; this cluster is made on this machine")
		a.Cluster = Auto
	}
	if a.Cluster != Auto {
		return a.Cluster
	}
	a.Cluster = Kind
	if err := engine.Ping(ctx, a.Engine()); err != nil && ctx.Err() == nil && a.NodeImage == "" && !a.Consents() {
		a.Cluster = Embedded
		a.Progress("no container engine answers, so this runs on an embedded control plane: " +
			"Pods do not really run there; kind has the last word (make setup brings up a container engine)")
	}
	return a.Cluster
}

// Ready gives what a run needs: the clusters of this checkout, swept of what dead owners left, and for kind a
// node image. What the machine lacks for n clusters at the same time is set up first, with consent where it needs root.
func (a *App) Ready(ctx context.Context, n int) (*clusters.Manager, nodeimage.Image, error) {
	processes, provider, err := a.OwnedEmbedded()
	if err != nil && a.Chosen(ctx) == Embedded {
		return nil, nodeimage.Image{}, err
	}
	if err == nil {
		a.Sweep(ctx, processes)
	}
	if a.Chosen(ctx) == Embedded {
		return processes, nodeimage.Image{}, a.prepare(ctx, provider)
	}
	return a.ReadyKind(ctx, n)
}

// ReadyKind does so for clusters of kind.
func (a *App) ReadyKind(ctx context.Context, n int) (*clusters.Manager, nodeimage.Image, error) {
	if err := a.SetUp(ctx, n); err != nil {
		return nil, nodeimage.Image{}, err
	}
	owned, err := a.OwnedKind()
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	image, err := memcached.NodeImage(a.Engine(), a.Cache, a.Progress).Resolve(ctx, a.NodeImage)
	if err != nil {
		return nil, image, err
	}
	a.Sweep(ctx, owned)
	if image.Stale {
		a.Progress("the node image " + image.Ref + " was built from other inputs: make node-image builds a new one")
	}
	return owned, image, nil
}

// Sweep removes what dead owners left, and says so where it cannot.
func (a *App) Sweep(ctx context.Context, owned *clusters.Manager) {
	if _, err := owned.Sweep(ctx); err != nil {
		a.Progress(fmt.Sprintf("could not remove what an earlier run left: %v", err))
	}
}

// OwnedKind gives the kind clusters of this checkout.
func (a *App) OwnedKind() (*clusters.Manager, error) {
	return clusters.New(a.State, clusters.WithEngine(a.Engine()))
}

// OwnedEmbedded gives the clusters of this checkout that are processes.
func (a *App) OwnedEmbedded() (*clusters.Manager, *embedded.Embedded, error) {
	provider, err := embedded.New(a.State, a.Cache, a.Progress)
	if err != nil {
		return nil, nil, err
	}
	owned, err := clusters.New(a.State, clusters.WithProvider(provider))
	return owned, provider, err
}

// Owners are the records of all clusters of this checkout. With an error they are those that could be read.
func (a *App) Owners(ctx context.Context) ([]clusters.Record, error) {
	owned, err := a.OwnedKind() // every provider reads the same records
	if err != nil {
		return nil, err
	}
	return owned.List(ctx)
}

// Owner gives the clusters of the provider that made the recorded one.
func (a *App) Owner(o clusters.Record) (*clusters.Manager, error) {
	if o.Provider != embedded.Identity {
		return a.OwnedKind()
	}
	owned, _, err := a.OwnedEmbedded()
	return owned, err
}

// Owned gives the clusters of the chosen provider without setting anything up.
func (a *App) Owned() (*clusters.Manager, error) {
	if a.Cluster != Embedded {
		return a.OwnedKind()
	}
	owned, _, err := a.OwnedEmbedded()
	return owned, err
}
