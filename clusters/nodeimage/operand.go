package nodeimage

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/lock"
)

// operandSource is where a registry has the operand, for machines that have one in reach and no Debian packages. The
// digest is that of the index of all platforms; the tag is for readers.
const operandSource = "docker.io/library/memcached:" + OperandVersion +
	"@sha256:9af8e788d5f7f4dc82fd49cf4a7efff1a0b5b4673085bc88f3ccb8a1c772ab3e"

// operandPullTimeout bounds the download of about 30 MB; without a network it is what everybody waits.
const operandPullTimeout = time.Minute

// OperandArchive returns the path of a docker-archive with [Operand], for nodes whose image lacks it. It is made once
// for each version: from the Debian packages of a node image that was built here before, else from a registry, else
// from Debian packages installed for the purpose. When no way is open the error is a [*clusters.Problem].
func OperandArchive(ctx context.Context, engineName, cacheDir string) (string, error) {
	return operandArchive(ctx, engine(engineName), cacheDir, operandSource)
}

func operandArchive(ctx context.Context, e engine, cacheDir, source string) (string, error) {
	out := filepath.Join(cacheDir, "operand", fmt.Sprintf("memcached-%s-%s.tar", OperandVersion, operandKey()))
	unlock, err := lock.Wait(ctx, out+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if fileExists(out) {
		return out, nil
	}
	err = replaceFile(out, func(tmp string) error { return obtainOperand(ctx, e, cacheDir, source, tmp) })
	if err != nil {
		return "", fmt.Errorf("write operand archive: %w", err)
	}
	return out, nil
}

// operandKey tells archives of different makings apart.
func operandKey() string {
	hash := sha256.New()
	for _, name := range []string{"contents.go", "recipe/parts.sh"} {
		data, err := recipe.ReadFile(name)
		if err != nil {
			panic(err) // the file is compiled in
		}
		hash.Write(data)
	}
	return fmt.Sprintf("%s-%.6x", arch, hash.Sum(nil))
}

// obtainOperand writes the operand's archive to a file.
func obtainOperand(ctx context.Context, e engine, cacheDir, source, file string) error {
	if fileExists(rootfsPath(cacheDir)) {
		return operandFromPackages(ctx, e, cacheDir, file)
	}
	pullErr := pullOperand(ctx, source, file)
	if pullErr == nil {
		return nil
	}
	if err := operandFromPackages(ctx, e, cacheDir, file); err != nil {
		return &clusters.Problem{
			What: "the image of memcached can neither be pulled nor built", Fix: "make setup",
			Err: fmt.Errorf("%w; %w", pullErr, err),
		}
	}
	return nil
}

func operandFromPackages(ctx context.Context, e engine, cacheDir, file string) error {
	rootfs, err := buildRootfs(ctx, cacheDir, func(string) {})
	if err != nil {
		return err
	}
	system, release, err := e.importRootfs(ctx, rootfs)
	if err != nil {
		return err
	}
	defer release()
	image, err := e.operandImage(ctx, system, filepath.Dir(file))
	if err != nil {
		return err
	}
	return writeArchive(file, map[string]v1.Image{Operand: image})
}

// operandImage makes the operand's image of the root file system that was imported. The image is read from a file in the
// folder dir.
func (e engine) operandImage(ctx context.Context, system, dir string) (v1.Image, error) {
	version, err := e.run(ctx, nil, "run", "--rm", "--network=none", system,
		"dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", "memcached")
	if err != nil {
		return nil, err
	}
	if version != OperandVersion {
		return nil, fmt.Errorf("memcached is %s in Debian, and the operand is called %s: change OperandVersion", version, Operand)
	}
	file := filepath.Join(dir, "memcached.tar")
	if err := e.writePart(ctx, system, "memcached", file); err != nil {
		return nil, err
	}
	files, err := partLayer(file)
	if err != nil {
		return nil, fmt.Errorf("make image %s: %w", Operand, err)
	}
	return operandImage(files)
}

// pullOperand writes an archive of the image in a registry, and gives it a numeric user, without which restricted Pods
// refuse it.
func pullOperand(ctx context.Context, source, file string) error {
	ctx, cancel := context.WithTimeout(ctx, operandPullTimeout)
	defer cancel()
	ref, err := name.ParseReference(source)
	if err != nil {
		return fmt.Errorf("pull operand: %w", err)
	}
	platform := v1.Platform{OS: "linux", Architecture: arch}
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform))
	if err != nil {
		return fmt.Errorf("pull operand: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("pull operand: %w", err)
	}
	if config.Architecture != arch {
		return fmt.Errorf("pull operand: %s is for %s, not for %s", source, config.Architecture, arch)
	}
	config = config.DeepCopy()
	config.Config.User = operandUser + ":" + operandUser
	if image, err = mutate.Config(image, config.Config); err != nil {
		return fmt.Errorf("pull operand: %w", err)
	}
	return writeArchive(file, map[string]v1.Image{Operand: image})
}

// Spec is how a cluster of this image is made: with [Operand] on its nodes, if its Pods are real.
func (i Image) Spec(m *clusters.Manager, cacheDir string) clusters.Spec {
	return clusters.Spec{Image: i.Ref, Prepare: func(ctx context.Context, c *clusters.Cluster) error {
		if !c.RealPods {
			return nil
		}
		return ensureOperand(ctx, m, c.Name, i, cacheDir)
	}}
}

// ensureOperand sees to it that every node of a cluster has [Operand]: nothing is to be done when it is in the node
// image, and otherwise its archive is loaded. The provider's clusters are containers of an engine.
func ensureOperand(ctx context.Context, m *clusters.Manager, cluster string, image Image, cacheDir string) error {
	if image.HasOperand {
		return nil
	}
	archive, err := OperandArchive(ctx, m.Engine(), cacheDir)
	if err != nil {
		return err
	}
	return m.Provider().LoadImageArchive(ctx, cluster, archive)
}
