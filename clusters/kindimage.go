package clusters

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// parallelLoads bounds how many nodes import an image at once. All of them
// unpack to the same disk; more than two only make each other slower.
const parallelLoads = 2

// LoadImageArchive imports a docker-archive tar into every node of the cluster.
func (k *Kind) LoadImageArchive(ctx context.Context, name, archive string) error {
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("load image archive: %w", err)
	}
	list, err := k.existing(ctx, name)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLoads)
	for _, node := range list {
		group.Go(func() error { return loadImage(ctx, node, archive) })
	}
	return group.Wait()
}

func loadImage(ctx context.Context, node nodes.Node, archive string) error {
	// Each node reads the file from its beginning.
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("load image archive: %w", err)
	}
	defer file.Close()
	if err := nodeutils.LoadImageArchive(node, contextReader{ctx, file}); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("load image archive %s into node %s: %w", archive, node, describe(err))
	}
	return nil
}

// contextReader ends when its context does, and so ends who reads from it.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// SaveImage writes an image that the engine has to a docker-archive tar.
//
// What the engine saves may be an index of several platforms of which it has
// only one (Docker's containerd image store does so), and no node can import
// that. So exactly the image that the engine would run is written.
func (k *Kind) SaveImage(ctx context.Context, image, archive string) error {
	tag, err := name.NewTag(image)
	if err != nil {
		return fmt.Errorf("save image: %w", err)
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	defer os.RemoveAll(dir)
	saved := filepath.Join(dir, "image.tar")
	if _, err := commandEngine(ctx, k.engine, "save", "--output", saved, image); err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	img, err := tarball.ImageFromPath(saved, nil)
	if err == nil {
		err = tarball.WriteToFile(archive, tag, img)
	}
	if err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	return nil
}
