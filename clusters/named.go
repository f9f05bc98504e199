package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gofrs/flock"
)

// Named is a Provider for somebody who chooses the names of clusters: the same
// ownership as Create's, without the naming. Its clusters belong to this process
// and are recorded under that purpose. Create begins with a sweep, so that a name
// is free again although the process that had it was killed. Of the optional
// abilities it has [NodeInspector] and [ImageSaver].
func (o *Owned) Named(purpose string) Provider { return named{o, purpose} }

// sweepPoll is how often to look whether another process has finished its sweep.
const sweepPoll = 200 * time.Millisecond

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
	// While another process sweeps, it may just be removing the cluster that has the name.
	wait := func(l *flock.Flock) (bool, error) { return l.TryLockContext(ctx, sweepPoll) }
	_, sweepErr := n.owned.sweep(ctx, wait)
	c, err := n.owned.create(ctx, name, n.purpose, spec, false)
	if err != nil {
		return nil, errors.Join(err, sweepErr)
	}
	return c, nil
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
