package main

import (
	"context"
	"fmt"
	"os"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/borrow"
)

// The values of --cluster.
const (
	auto         = "auto" // kind where a container engine answers, embedded elsewhere
	onKind       = "kind"
	onEmbedded   = "embedded"
	onRoom       = "room" // for verdicts those that the room lends; for everything else auto
	kindHasWord  = "Pods do not really run there; kind has the last word"
	wantAnEngine = "make setup brings up a container engine"
)

// engine is the container engine's command, as kind names its providers.
func (a *app) engine() string {
	if e := os.Getenv("KIND_EXPERIMENTAL_PROVIDER"); e != "" {
		return e
	}
	return "docker"
}

// chosen is the kind of cluster to make: that of --cluster, or what this machine can do. Who has agreed beforehand
// to what a container engine takes gets one, and kind.
func (a *app) chosen(ctx context.Context) string {
	if a.cluster == onRoom {
		a.progress("the room lends clusters for verdicts only; this one is made on this machine")
		a.cluster = auto
	}
	if a.cluster != auto {
		return a.cluster
	}
	a.cluster = onKind
	if err := clusters.PingEngine(ctx, a.engine()); err != nil && ctx.Err() == nil && a.nodeImage == "" && !a.yes {
		a.cluster = onEmbedded
		a.progress("no container engine answers, so this runs on an embedded control plane: " + kindHasWord + " (" + wantAnEngine + ")")
	}
	return a.cluster
}

// ready gives what a run needs: the clusters of this checkout, swept of what dead owners left, and for kind a
// node image. What the machine lacks for n clusters at the same time is set up first, with consent where it needs root.
func (a *app) ready(ctx context.Context, n int) (*clusters.Owned, nodeimage.Image, error) {
	processes, provider, err := a.ownedEmbedded()
	if err != nil && a.chosen(ctx) == onEmbedded {
		return nil, nodeimage.Image{}, err
	}
	if err == nil {
		a.sweep(ctx, processes)
	}
	if a.chosen(ctx) == onEmbedded {
		return processes, nodeimage.Image{}, provider.Prepare(ctx)
	}
	return a.readyKind(ctx, n)
}

func (a *app) readyKind(ctx context.Context, n int) (*clusters.Owned, nodeimage.Image, error) {
	if err := a.setUp(ctx, n); err != nil {
		return nil, nodeimage.Image{}, err
	}
	owned, err := a.ownedKind()
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	image, err := nodeimage.Resolver{Engine: a.engine(), Log: a.progress}.Resolve(ctx, a.nodeImage)
	if err != nil {
		return nil, image, err
	}
	a.sweep(ctx, owned)
	if image.Stale {
		a.progress("the node image " + image.Ref + " was built by an older recipe: make node-image builds a new one")
	}
	return owned, image, nil
}

func (a *app) sweep(ctx context.Context, owned *clusters.Owned) {
	if _, err := owned.Sweep(ctx); err != nil {
		a.progress(fmt.Sprintf("could not remove what an earlier run left: %v", err))
	}
}

// ownedKind gives the kind clusters of this checkout.
func (a *app) ownedKind() (*clusters.Owned, error) {
	kind, err := clusters.NewKind(a.state, clusters.WithEngine(a.engine()))
	if err != nil {
		return nil, err
	}
	return clusters.NewOwned(a.state, kind), nil
}

// ownedEmbedded gives the clusters of this checkout that are processes.
func (a *app) ownedEmbedded() (*clusters.Owned, *embedded.Embedded, error) {
	provider, err := embedded.New(a.state, a.root, a.cache, embedded.WithLogger(a.progress))
	if err != nil {
		return nil, nil, err
	}
	return clusters.NewOwned(a.state, provider), provider, nil
}

// owners are the records of all clusters of this checkout. With an error they are those that could be read.
func (a *app) owners(ctx context.Context) ([]clusters.Owner, error) {
	owned, err := a.ownedKind() // every provider reads the same records
	if err != nil {
		return nil, err
	}
	return owned.List(ctx)
}

// owner gives the clusters of the provider that made the recorded one.
func (a *app) owner(o clusters.Owner) (*clusters.Owned, error) {
	switch {
	case borrow.Made(o.Provider):
		return a.ownedRoom()
	case o.Provider != embedded.Identity:
		return a.ownedKind()
	}
	owned, _, err := a.ownedEmbedded()
	return owned, err
}
