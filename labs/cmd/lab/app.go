package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/exit"
)

// app is what every command shares: where things are and where to write.
type app struct {
	root  string // the checkout
	state string // .lab below it
	cache string // LAB_CACHE, else operator-lab in the user's cache directory

	in  io.Reader
	out io.Writer // reports
	err io.Writer // progress

	cluster   string // --cluster: auto, kind
	nodeImage string // --node-image, "" = choose
	workspace string // --workspace, absolute
	yes       bool   // --yes: consent to what needs root or minutes
}

// newApp finds the checkout that the working directory is in.
func newApp() (*app, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	return &app{
		root: root, state: filepath.Join(root, ".lab"), cache: cache,
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
	}, nil
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "labs", "course.yaml")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", exit.Usage("%s is not inside a checkout of operator-lab: cd into it first", dir)
		}
	}
}

func cacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", exit.Usage("no cache directory: set LAB_CACHE or HOME (%v)", err)
	}
	return filepath.Join(dir, "operator-lab"), nil
}

// provider gives the clusters of this checkout and the node image that they are made of.
func (a *app) provider(ctx context.Context) (*clusters.Owned, nodeimage.Image, error) {
	owned, err := a.owned()
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	image, err := nodeimage.Resolve(ctx, a.engine(), a.nodeImage)
	return owned, image, err
}

// owned gives the clusters of this checkout without asking for a node image.
func (a *app) owned() (*clusters.Owned, error) {
	kind, err := clusters.NewKind(a.state, clusters.WithEngine(a.engine()))
	if err != nil {
		return nil, err
	}
	return clusters.NewOwned(a.state, kind), nil
}

// engine is the container engine's command, as kind names its providers.
func (a *app) engine() string {
	if e := os.Getenv("KIND_EXPERIMENTAL_PROVIDER"); e != "" {
		return e
	}
	return "docker"
}

// ready gives what a run needs: the clusters of this checkout, swept of what dead owners left, and a
// node image. What the machine lacks for that is set up first, with consent.
func (a *app) ready(ctx context.Context) (*clusters.Owned, nodeimage.Image, error) {
	if err := a.setUp(ctx); err != nil {
		return nil, nodeimage.Image{}, err
	}
	owned, image, err := a.provider(ctx)
	if err != nil {
		return nil, image, err
	}
	if _, err := owned.Sweep(ctx); err != nil {
		a.progress(fmt.Sprintf("could not remove what an earlier run left: %v", err))
	}
	if image.Stale {
		a.progress("the node image " + image.Ref + " was built by an older recipe: make node-image builds a new one")
	}
	return owned, image, nil
}
