package cli

import (
	"context"
	"fmt"
	"os"
	"time"

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
	if a.NodeImage == "" && !a.Consents() && a.PingEngine(ctx) != nil && ctx.Err() == nil {
		a.Cluster = Embedded
		a.Progress("no container engine answers, so this runs on an embedded control plane: " +
			"Pods do not really run there, so checks that need them are left out (make setup brings up a container engine)")
	}
	return a.Cluster
}

// Ready gives what a run needs: the clusters of this checkout, swept of what dead owners left, and for kind a
// node image. What the machine lacks for n clusters at the same time is set up first, with consent where it needs root.
func (a *App) Ready(ctx context.Context, n int) (*clusters.Manager, nodeimage.Image, error) {
	owned, err := a.OwnedEmbedded()
	if err == nil {
		a.sweep(ctx, owned)
	}
	if a.Chosen(ctx) == Kind {
		return a.ReadyKind(ctx, n)
	}
	if err == nil {
		err = a.prepare(ctx, owned)
	}
	return owned, nodeimage.Image{}, err
}

// ReadyKind does so for clusters of kind.
func (a *App) ReadyKind(ctx context.Context, n int) (*clusters.Manager, nodeimage.Image, error) {
	if err := a.SetUp(ctx, n); err != nil {
		return nil, nodeimage.Image{}, err
	}
	owned, err := a.ownedKind()
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	image, err := memcached.NodeImage(a.Engine(), a.Cache, a.Progress).Resolve(ctx, a.NodeImage)
	if err != nil {
		return nil, image, err
	}
	a.sweep(ctx, owned)
	if image.Stale {
		a.Progress("the node image " + image.Ref + " was built from other inputs: make node-image builds a new one")
	}
	return owned, image, nil
}

// sweep removes what dead owners left, and says so where it cannot.
func (a *App) sweep(ctx context.Context, owned *clusters.Manager) {
	if _, err := owned.Sweep(ctx); err != nil {
		a.Progress(fmt.Sprintf("could not remove what an earlier run left: %v", err))
	}
}

func (a *App) ownedKind() (*clusters.Manager, error) {
	return clusters.New(a.State, clusters.WithEngine(a.Engine()))
}

// OwnedEmbedded gives the clusters of this checkout that are processes.
func (a *App) OwnedEmbedded() (*clusters.Manager, error) {
	return embedded.NewManager(a.State, a.Cache, a.Progress)
}

// Missing names the programs that the embedded control plane lacks.
func Missing(owned *clusters.Manager) []string {
	return owned.Provider().(*embedded.Embedded).Missing()
}

// Owners are the records of all clusters of this checkout. With an error they are those that could be read.
func (a *App) Owners(ctx context.Context) ([]clusters.Record, error) {
	owned, err := a.ownedKind() // every provider reads the same records
	if err != nil {
		return nil, err
	}
	return owned.List(ctx)
}

// Owner gives the clusters of the provider that made the recorded one.
func (a *App) Owner(o clusters.Record) (*clusters.Manager, error) {
	return a.owned(o.Provider == embedded.Identity)
}

// Owned gives the clusters of the chosen provider without setting anything up.
func (a *App) Owned() (*clusters.Manager, error) { return a.owned(a.Cluster == Embedded) }

func (a *App) owned(processes bool) (*clusters.Manager, error) {
	if processes {
		return a.OwnedEmbedded()
	}
	return a.ownedKind()
}

// removeLimit is how long a cluster may take to go, also after an interrupt.
const removeLimit = 90 * time.Second

// Delete deletes the cluster of a command that is at its end, or was interrupted.
func Delete(ctx context.Context, owned *clusters.Manager, cluster *clusters.Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	return owned.Delete(ctx, cluster.Name)
}

// Spec is how a cluster is made for the user of this machine.
func (a *App) Spec(owned *clusters.Manager, image nodeimage.Image) clusters.Spec {
	return memcached.Spec(image, owned, a.Cache)
}
