package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/internal/lock"
)

// Options say how [Build] builds.
type Options struct {
	// Engine is the container engine's command line; "" means docker.
	Engine string
	// CacheDir keeps programs and packages between builds.
	CacheDir string
	// Root is the checkout.
	Root string
	// WithOperand puts [Operand] into the image. Without it the image has a tag of its own, so that both can exist.
	WithOperand bool
	// Log is told in one line what takes long. The default tells nobody.
	Log func(line string)
}

// Build makes the node image of the checkout, unless the engine has it already, and takes away the one it replaces.
// A first build takes about ten minutes on two cores, most of them for compiling. It needs an engine that runs
// privileged containers, debootstrap, and root for the latter; what the machine lacks is a [*clusters.Problem].
func Build(ctx context.Context, o Options) (Image, error) {
	if o.Engine == "" {
		o.Engine = "docker"
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	ref := localRef(o.WithOperand)
	unlock, err := lock.Wait(ctx, filepath.Join(o.CacheDir, "node-image.lock"))
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	digest, err := recipeDigest(o.Root, o.WithOperand)
	if err != nil {
		return Image{}, err
	}
	old, err := engine(o.Engine).inspect(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	if old == nil || old.Config.Labels[recipeLabel] != digest {
		if err := (&builder{Options: o, engine: engine(o.Engine), ref: ref, digest: digest}).build(ctx); err != nil {
			return Image{}, fmt.Errorf("build node image: %w", err)
		}
		if old != nil {
			// A cluster may still run on it; then it stays.
			engine(o.Engine).release(ctx, "image", "rm", old.ID)
		}
	}
	return Image{Ref: ref, Local: true, HasOperand: o.WithOperand}, nil
}

// builder is one build under way.
type builder struct {
	Options
	engine engine
	ref    string // of the image to make
	digest string // of its recipe
	system string // image of the root file system
	dir    string // for files that are not needed afterwards

	programs map[string]string // by component
}

func (b *builder) build(ctx context.Context) (err error) {
	cb := &components.Builder{CacheDir: b.CacheDir, Log: b.Log}
	if b.programs, err = cb.Build(ctx, nodeComponents()...); err != nil {
		return err
	}
	rootfs, err := buildRootfs(ctx, b.CacheDir, b.Log)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(b.CacheDir, "node-image-"); err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }()

	b.Log("assembling " + b.ref)
	system, release, err := b.engine.importRootfs(ctx, rootfs)
	if err != nil {
		return err
	}
	defer release()
	b.system = system
	return b.provision(ctx)
}

// provision runs a container of the root file system, gives it the node's files and the images of all components, has it
// configured, and keeps it as the image.
func (b *builder) provision(ctx context.Context) error {
	container, remove, err := b.engine.start(ctx, b.system)
	if err != nil {
		return err
	}
	defer remove()
	kindDir, err := run(ctx, nil, "go", "-C", b.Root, "list", "-m", "-f", "{{.Dir}}", kindModule)
	if err != nil {
		return err
	}
	files, err := nodeFiles(kindDir, b.programs)
	if err != nil {
		return err
	}
	if err := b.engine.exec(ctx, container, tarOf(files...), "tar", "--extract", "--touch", "--directory=/"); err != nil {
		return err
	}
	images, err := b.componentImages(ctx, container)
	if err != nil {
		return err
	}
	archive := filepath.Join(b.dir, "images.tar")
	if err := writeArchive(archive, images); err != nil {
		return err
	}
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	if err := b.engine.exec(ctx, container, in, "bash", "-c", string(recipeFile("provision.sh"))); err != nil {
		return err
	}
	labels := map[string]string{recipeLabel: b.digest}
	if b.WithOperand {
		labels[operandLabel] = Operand
	}
	commit := []string{"commit"}
	for _, change := range nodeChanges(labels) {
		commit = append(commit, "--change", change)
	}
	_, err = b.engine.run(ctx, nil, append(commit, container, b.ref)...)
	return err
}

// componentImages makes the images that kubeadm asks for, the one that holds a Pod's namespaces, and the operand's.
func (b *builder) componentImages(ctx context.Context, container string) (map[string]v1.Image, error) {
	list, err := b.engine.run(ctx, nil, "exec", container,
		"kubeadm", "config", "images", "list", "--kubernetes-version", KubernetesVersion)
	if err != nil {
		return nil, err
	}
	sandbox, err := b.engine.run(ctx, nil, "exec", container,
		"sed", "-n", `s/^ *sandbox_image = "\(.*\)"/\1/p`, "/etc/containerd/config.toml")
	if err != nil {
		return nil, err
	}
	if sandbox == "" {
		return nil, errors.New("find the image of Pods' first containers: containerd's configuration names none")
	}
	images := map[string]v1.Image{}
	for _, ref := range append(strings.Fields(list), sandbox) {
		component, version := componentOf(ref)
		if err := checkVersion(component, version); err != nil {
			return nil, err
		}
		var parts []v1.Layer
		if component == "kube-proxy" { // it calls the programs of netfilter
			netfilter := filepath.Join(b.dir, "netfilter.tar")
			if err := b.engine.writePart(ctx, b.system, "netfilter", netfilter); err != nil {
				return nil, err
			}
			part, err := partLayer(netfilter)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		if images[ref], err = componentImage(component, b.programs[component], parts...); err != nil {
			return nil, fmt.Errorf("make image %s: %w", ref, err)
		}
	}
	if b.WithOperand {
		if images[Operand], err = b.engine.operandImage(ctx, b.system, b.dir); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// checkVersion makes sure that the image kubeadm asks for holds the version that its tag promises.
func checkVersion(component, asked string) error {
	if component == "pause" { // ours, whatever the number
		return nil
	}
	if built := components.Version(component); built != asked {
		return fmt.Errorf("kubeadm %s asks for %s %s, and clusters/components pins %q: change its module",
			KubernetesVersion, component, asked, built)
	}
	return nil
}

// writeArchive writes images as docker-archive.
func writeArchive(file string, images map[string]v1.Image) error {
	tags := map[name.Tag]v1.Image{}
	for ref, image := range images {
		tag, err := name.NewTag(ref)
		if err != nil {
			return fmt.Errorf("write image archive: %w", err)
		}
		tags[tag] = image
	}
	if err := tarball.MultiWriteToFile(file, tags); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	return nil
}
