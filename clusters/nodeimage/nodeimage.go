// Package nodeimage chooses the image that the nodes of a kind cluster are made of, and builds one where none can be
// had: from Debian packages and Go modules, without any image registry.
package nodeimage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/layout"
)

const (
	// KubernetesVersion is the version of the node image that [Build] makes.
	KubernetesVersion = "v1.36.3"
	// Repository is the name of the locally built image; its tag is [KubernetesVersion].
	Repository = "operator-lab.local/node"
	// OperandVersion is that of Debian's memcached in the node image's distribution.
	OperandVersion = "1.6.18"
	// Operand is the image of memcached in every node, whatever its source.
	Operand = "operator-lab.local/memcached:" + OperandVersion
)

// Labels of an image that [Build] made.
const (
	recipeLabel  = layout.NodeImageLabel
	operandLabel = "operator-lab.operand"
)

// fixImage is the command that builds a node image.
const fixImage = "make node-image"

// Image is a node image that is on this machine.
type Image struct {
	// Ref is what the container engine calls it.
	Ref string `json:"ref"`
	// Local says that [Build] made it.
	Local bool `json:"local"`
	// HasOperand says that [Operand] is in it. Otherwise [OperandArchive] has to be loaded into each cluster.
	HasOperand bool `json:"hasOperand"`
	// Stale says that it was built from another recipe than that of the checkout.
	Stale bool `json:"stale"`
}

// InputError is a requested image that cannot be a node image. The fault is the request's.
type InputError struct {
	// Ref is what was requested, and Why what is wrong with it.
	Ref, Why string
}

// Error is one line that says what would be right.
func (e *InputError) Error() string {
	return fmt.Sprintf("NODE_IMAGE=%s is no node image: %s; leave it out, or name an image such as %s or %s",
		e.Ref, e.Why, localRef(true), clusters.DefaultNodeImage)
}

// Resolve finds the node image to use without reporting progress; see [Resolver.Resolve].
func Resolve(ctx context.Context, engineName, requested string) (Image, error) {
	return Resolver{Engine: engineName}.Resolve(ctx, requested)
}

// Resolver finds node images.
type Resolver struct {
	// Engine is the container engine's command line: docker, podman or nerdctl.
	Engine string
	// Log is told in one line what takes long. The default tells nobody.
	Log func(line string)

	period time.Duration // in place of reportPeriod, in tests
}

// Resolve finds the node image to use: the requested one; else the one that [Build] made, with the operand or without;
// else kind's default by digest, which is pulled when it is not here yet. An image that turns out to be none is an
// [*InputError]; when there is nothing to use, the error is a [*clusters.Problem].
//
// Whether a local image is stale is known only inside a checkout.
func (r Resolver) Resolve(ctx context.Context, requested string) (Image, error) {
	if requested != "" {
		return r.resolveRequested(ctx, requested)
	}
	for _, withOperand := range []bool{true, false} {
		found, err := engine(r.Engine).inspect(ctx, localRef(withOperand))
		if err != nil {
			return Image{}, err
		}
		if found != nil {
			return found.image(localRef(withOperand), checkout()), nil
		}
	}
	return r.resolveDefault(ctx)
}

func (r Resolver) resolveRequested(ctx context.Context, ref string) (Image, error) {
	found, err := r.obtain(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	if found == nil {
		return Image{}, &InputError{ref, "it is not on this machine and cannot be pulled"}
	}
	if !found.isNode() {
		return Image{}, &InputError{ref, "it does not start kind's entrypoint"}
	}
	return found.image(ref, checkout()), nil
}

func (r Resolver) resolveDefault(ctx context.Context) (Image, error) {
	ref := clusters.DefaultNodeImage
	found, err := r.obtain(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	if found == nil {
		return Image{}, &clusters.Problem{
			What: "no node image: none was built here, and " + ref + " cannot be pulled", Fix: fixImage,
		}
	}
	return found.image(ref, ""), nil
}

// Available says whether Resolve would succeed without pulling anything.
func Available(ctx context.Context, engineName, requested string) (bool, error) {
	refs := []string{requested}
	if requested == "" {
		refs = []string{localRef(true), localRef(false), clusters.DefaultNodeImage}
	}
	for _, ref := range refs {
		found, err := engine(engineName).inspect(ctx, ref)
		if err != nil || found != nil {
			return found != nil, err
		}
	}
	return false, nil
}

// localRef is the reference of the image that Build makes.
func localRef(withOperand bool) string {
	ref := Repository + ":" + KubernetesVersion
	if !withOperand {
		ref += "-no-operand"
	}
	return ref
}

// inspection is what an engine says about an image.
type inspection struct {
	ID     string `json:"Id"`
	Config struct {
		Entrypoint []string
		Labels     map[string]string
	}
}

// isNode says whether the image starts like a kind node.
func (i *inspection) isNode() bool { return slices.Equal(i.Config.Entrypoint, entrypoint()) }

// image judges what was found under ref against the recipe of the checkout at root; an empty root means there is none.
func (i *inspection) image(ref, root string) Image {
	digest, local := i.Config.Labels[recipeLabel]
	operand := i.Config.Labels[operandLabel] == Operand
	image := Image{Ref: ref, Local: local, HasOperand: operand}
	if local && root != "" {
		today, err := recipeDigest(root, operand)
		image.Stale = err == nil && today != digest
	}
	return image
}

// checkout is the root of the checkout that the working directory is in, or "".
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+rootModule+"\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// rootModule is the module of the checkout's root.
const rootModule = "github.com/example/operator-lab"
