package clusters

import (
	"context"
	"errors"
	"fmt"
)

// Named is a Provider for somebody who chooses the names of clusters: the same
// ownership as Create's, without the naming. Its clusters belong to this process
// and are recorded under that purpose; Sweep finds them when the process dies. Of
// the optional abilities it has [NodeInspector] and [ImageSaver].
func (o *Owned) Named(purpose string) Provider { return named{o, purpose} }

type named struct {
	owned   *Owned
	purpose string
}

var (
	_ Provider      = named{}
	_ NodeInspector = named{}
	_ ImageSaver    = named{}
)

func (n named) Create(ctx context.Context, name string, spec Spec) (*Cluster, error) {
	return n.owned.create(ctx, name, n.purpose, spec, false)
}

func (n named) Delete(ctx context.Context, name string) error { return n.owned.Delete(ctx, name) }

func (n named) List(ctx context.Context) ([]string, error) { return n.owned.provider.List(ctx) }

func (n named) LoadImageArchive(ctx context.Context, name, archive string) error {
	return n.owned.provider.LoadImageArchive(ctx, name, archive)
}

func (n named) CollectLogs(ctx context.Context, name, dir string) error {
	return n.owned.provider.CollectLogs(ctx, name, dir)
}

// Nodes asks the provider, and knows of no node when it cannot tell.
func (n named) Nodes(ctx context.Context, name string) ([]Node, error) {
	if p, ok := n.owned.provider.(NodeInspector); ok {
		return p.Nodes(ctx, name)
	}
	return nil, fmt.Errorf("list nodes of cluster %s: %w", name, errors.ErrUnsupported)
}

func (n named) SaveImage(ctx context.Context, image, archive string) error {
	if p, ok := n.owned.provider.(ImageSaver); ok {
		return p.SaveImage(ctx, image, archive)
	}
	return fmt.Errorf("save image %s: %w", image, errors.ErrUnsupported)
}
