// Package nodeimage finds the image that the nodes of a kind cluster are made of, and builds one where none can be
// had: from Debian packages and Go modules, without an image registry.
package nodeimage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/internal/layout"
)

// KubernetesVersion is the version of the node image that [Build] makes.
const KubernetesVersion = "v1.36.3"

const (
	localRef            = "operator-lab.local/node:" + KubernetesVersion // what Build makes
	imagesLabel         = "operator-lab.images"                          // the names of its extra images, with spaces between
	entrypoint, systemd = "/usr/local/bin/entrypoint", "/sbin/init"      // how every kind node starts
)

// Options say where node images come from.
type Options struct {
	Engine   string            // the container engine's command: docker, podman or nerdctl; "" is docker
	CacheDir string            // keeps programs between builds; only [Build] needs it
	Images   []ExtraImage      // in an image that Build makes, beside those of Kubernetes' own Pods
	Log      func(line string) // gets a line before something that takes long; nil drops it
}

// ExtraImage is an image in the nodes: a program of a Debian package, with its libraries and nothing else. It runs as a
// user who is not root.
type ExtraImage struct {
	Ref     string // the image's name; its tag is the package's upstream version, and Build fails if Debian has another one
	Package string // the Debian package
	Program string // the path of its program
}

// Image is a node image that is on this machine.
type Image struct {
	Ref    string   // what the container engine calls it
	Local  bool     // [Build] made it
	Images []string // the names of the extra images in it
	Stale  bool     // Build would make another one, with these options
}

// InputError is a requested image that cannot be a node image. The fault is the request's.
type InputError struct {
	Ref, Why string // what was requested, and what is wrong with it
}

// Error is one line that says what would be right.
func (e *InputError) Error() string {
	return fmt.Sprintf("NODE_IMAGE=%s is no node image: %s; leave it out, or name an image such as %s or %s",
		e.Ref, e.Why, localRef, clusters.DefaultNodeImage)
}

// Resolve finds the node image to use, without a log and extra images; see [Options.Resolve].
func Resolve(ctx context.Context, engineName, requested string) (Image, error) {
	return Options{Engine: engineName}.Resolve(ctx, requested)
}

// Resolve finds the node image to use: the requested one; else the one that [Build] made; else kind's default. The first
// and the last are pulled when they are not on this machine. A requested image that is none is an [*InputError]; when
// there is nothing to use, the error is a [*clusters.Problem].
func (o Options) Resolve(ctx context.Context, requested string) (Image, error) {
	ref := requested
	if ref == "" {
		found, err := o.inspect(ctx, localRef)
		if err != nil {
			return Image{}, err
		}
		if found != nil {
			return o.image(localRef, found), nil
		}
		ref = clusters.DefaultNodeImage
	}
	found, err := o.pull(ctx, ref)
	switch {
	case err != nil:
		return Image{}, err
	case found == nil && requested == "":
		return Image{}, &clusters.Problem{
			What: "no node image: none was built here, and " + ref + " cannot be pulled", Reason: clusters.ErrImageMissing,
		}
	case found == nil:
		return Image{}, &InputError{ref, "it is not on this machine and cannot be pulled"}
	case requested != "" && !slices.Equal(found.Config.Entrypoint, []string{entrypoint, systemd}):
		return Image{}, &InputError{ref, "it does not start kind's entrypoint"}
	}
	return o.image(ref, found), nil
}

// image judges what was found under ref.
func (o Options) image(ref string, found *engine.Image) Image {
	digest, local := found.Config.Labels[layout.NodeImageLabel]
	image := Image{Ref: ref, Local: local, Images: strings.Fields(found.Config.Labels[imagesLabel])}
	if image.Local {
		today, err := o.inputsDigest()
		image.Stale = err == nil && today != digest
	}
	return image
}

// Available says whether Resolve would succeed without a pull.
func Available(ctx context.Context, engineName, requested string) (bool, error) {
	refs := []string{requested}
	if requested == "" {
		refs = []string{localRef, clusters.DefaultNodeImage}
	}
	for _, ref := range refs {
		if found, err := (Options{Engine: engineName}).inspect(ctx, ref); err != nil || found != nil {
			return found != nil, err
		}
	}
	return false, nil
}
