// Package memcached has the image that the learner's operator runs. Every node of a cluster with real Pods has it: a
// node image that was built here contains it, and into others it is loaded.
package memcached

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/fix"
)

const (
	// version is that of the memcached in the node image's Debian.
	version = "1.6.18"
	// Image is the name of the image on every node.
	Image = "operator-lab.local/memcached:" + version
	// source is where a registry has it, by the digest of all its platforms. The tag is for readers.
	source = "docker.io/library/memcached:" + version + "@sha256:9af8e788d5f7f4dc82fd49cf4a7efff1a0b5b4673085bc88f3ccb8a1c772ab3e"
	// user is who runs it, as a number: the kubelet cannot tell whether a name is root.
	user = "11211:11211"
	// pullTimeout bounds the download of about 30 MB. Without a network it is what everybody waits.
	pullTimeout = time.Minute
)

// NodeImage says how a node image with [Image] is found and built.
func NodeImage(engine, cacheDir string, log func(line string)) nodeimage.Options {
	return nodeimage.Options{
		Engine: engine, CacheDir: cacheDir, Log: log,
		Images: []nodeimage.ExtraImage{{Ref: Image, Package: "memcached", Program: "/usr/bin/memcached"}},
	}
}

// Spec is how a cluster is made of a node image: with [Image] on its nodes, if its Pods are real. The image is pulled
// once and kept below cacheDir.
func Spec(node nodeimage.Image, m *clusters.Manager, cacheDir string) clusters.Spec {
	return clusters.Spec{Image: node.Ref, Prepare: func(ctx context.Context, c *clusters.Cluster) error {
		if !c.RealPods || slices.Contains(node.Images, Image) {
			return nil
		}
		file, err := archive(ctx, cacheDir, source)
		if err != nil {
			return &clusters.Problem{
				What: "node image " + node.Ref + " lacks memcached, which cannot be pulled", Err: err,
				Fix: fix.NodeImage + ", and leave out NODE_IMAGE",
			}
		}
		return m.Provider().LoadImageArchive(ctx, c.Name, file)
	}}
}

// archive returns the path of a docker-archive with [Image]. The first call pulls the image from source.
func archive(ctx context.Context, cacheDir, source string) (string, error) {
	file := filepath.Join(cacheDir, "memcached-"+version+"-"+runtime.GOARCH+".tar")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cacheDir, "memcached-") // nobody sees half an archive
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tmp := filepath.Join(dir, "image.tar")
	if err := pull(ctx, source, tmp); err != nil {
		return "", fmt.Errorf("pull %s: %w", source, err)
	}
	return file, os.Rename(tmp, file)
}

// pull writes an archive of the image in a registry, and gives it a user that restricted Pods admit.
func pull(ctx context.Context, source, file string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	ref, err := name.ParseReference(source)
	if err != nil {
		return err
	}
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	changed := *config.Config.DeepCopy()
	changed.User = user
	if image, err = mutate.Config(image, changed); err != nil {
		return err
	}
	tag, err := name.NewTag(Image)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, image)
}
