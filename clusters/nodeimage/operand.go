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
)

// operandSource is where a registry has the operand, for machines that have one in reach and no Debian packages.
const operandSource = "docker.io/library/memcached:" + OperandVersion

// operandPullTimeout bounds the download of about 30 MB; without a network it is what everybody waits.
const operandPullTimeout = time.Minute

// OperandArchive returns the path of a docker-archive with [Operand], for nodes whose image lacks it. It is made once
// for each version: from the Debian packages of a node image that was built here before, else from a registry, else
// from Debian packages installed for the purpose. When no way is open the error is a [*clusters.Problem].
func OperandArchive(ctx context.Context, cacheDir string) (string, error) {
	return operandArchive(ctx, cacheDir, operandSource)
}

func operandArchive(ctx context.Context, cacheDir, source string) (string, error) {
	out := filepath.Join(cacheDir, "operand", fmt.Sprintf("memcached-%s-%s.tar", OperandVersion, operandKey()))
	unlock, err := lock(ctx, out)
	if err != nil {
		return "", err
	}
	defer unlock()
	if fileExists(out) {
		return out, nil
	}
	image, release, err := obtainOperand(ctx, cacheDir, source)
	if err != nil {
		return "", err
	}
	defer release()
	err = replaceFile(out, func(tmp string) error {
		return writeArchive(tmp, map[string]v1.Image{Operand: image})
	})
	if err != nil {
		return "", fmt.Errorf("write operand archive: %w", err)
	}
	return out, nil
}

// operandKey tells archives of different makings apart.
func operandKey() string {
	contents, err := recipe.ReadFile("contents.go")
	if err != nil {
		panic(err) // the file is compiled in
	}
	return fmt.Sprintf("%s-%.6x", arch, sha256.Sum256(contents))
}

// obtainOperand finds the operand's image; release frees what it is read from.
func obtainOperand(ctx context.Context, cacheDir, source string) (image v1.Image, release func(), err error) {
	if fileExists(rootfsPath(cacheDir)) {
		return operandFromPackages(ctx, cacheDir)
	}
	pullCtx, cancel := context.WithTimeout(ctx, operandPullTimeout)
	image, pullErr := pullOperand(pullCtx, source)
	if pullErr == nil {
		return image, cancel, nil // the layers are still to come
	}
	cancel()
	image, release, err = operandFromPackages(ctx, cacheDir)
	if err != nil {
		return nil, nil, &clusters.Problem{
			What: "the image of memcached can neither be pulled nor built", Fix: "make setup",
			Err: fmt.Errorf("%w; %w", pullErr, err),
		}
	}
	return image, release, nil
}

func operandFromPackages(ctx context.Context, cacheDir string) (v1.Image, func(), error) {
	packages, err := buildRootfs(ctx, cacheDir, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	system, err := openRootfs(packages)
	if err != nil {
		return nil, nil, err
	}
	image, err := operandImage(system)
	if err != nil {
		_ = system.Close()
		return nil, nil, fmt.Errorf("make image %s: %w", Operand, err)
	}
	return image, func() { _ = system.Close() }, nil
}

// pullOperand takes the image from a registry and gives it a numeric user, without which restricted Pods refuse it.
func pullOperand(ctx context.Context, source string) (v1.Image, error) {
	ref, err := name.ParseReference(source)
	if err != nil {
		return nil, fmt.Errorf("pull operand: %w", err)
	}
	platform := v1.Platform{OS: "linux", Architecture: arch}
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf("pull operand: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("pull operand: %w", err)
	}
	config := file.Config
	config.User = operandUser + ":" + operandUser
	return mutate.Config(image, config)
}

// EnsureOperand sees to it that every node of a cluster has [Operand]: nothing is to be done when it is in the node
// image, and otherwise its archive is loaded.
func EnsureOperand(ctx context.Context, p clusters.Provider, cluster string, image Image, cacheDir string) error {
	if image.HasOperand {
		return nil
	}
	archive, err := OperandArchive(ctx, cacheDir)
	if err != nil {
		return err
	}
	return p.LoadImageArchive(ctx, cluster, archive)
}
