package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/suite"
)

// playgroundLabel marks the cluster of `lab up` among those of this checkout.
const playgroundLabel = "up"

// newUpCommand is `lab up`.
func newUpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Start a cluster to play with, with your CRD if there is one",
		Long: `Start a cluster to play with. It stays until lab down, and no lab is judged on it.

When config/crd/bases of the workspace holds custom resource definitions, they are installed. Running it again
installs them anew in the cluster that is there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context()) },
	}
}

func (a *app) up(ctx context.Context) error {
	unlock, err := a.Lock("playground", "the cluster to play with")
	if err != nil {
		return err
	}
	defer unlock()
	c, err := a.playground(ctx)
	if err == nil && c == nil {
		c, err = a.startPlayground(ctx)
	}
	if err != nil {
		return err
	}
	if err := a.installCRDs(ctx, c); err != nil {
		// The cluster is what was asked for; a broken CRD is what it is there to find out about.
		a.Progress(fmt.Sprintf("your CRD is not installed: %v", err))
	}
	fmt.Fprintf(a.Out, `Cluster %s runs Kubernetes %s.

  make shell    a shell that talks to it
  make down     removes it

In a shell of your own:

  export KUBECONFIG=%s
`, c.Name, c.Version, c.Kubeconfig)
	return nil
}

// playground finds the cluster of `lab up`, which has to be healthy; nil if there is none.
func (a *app) playground(ctx context.Context) (*clusters.Cluster, error) {
	owners, err := a.Owners(ctx)
	for _, owner := range owners {
		if owner.Label == playgroundLabel && owner.Kept && owner.Cluster != nil {
			return owner.Cluster, a.healthy(ctx, &owner)
		}
	}
	return nil, err
}

// healthy says whether the cluster of a record can be worked with.
func (a *app) healthy(ctx context.Context, owner *clusters.Record) error {
	owned, err := a.Owner(*owner)
	if err != nil {
		return err
	}
	return owned.Healthy(ctx, owner.Cluster)
}

// startPlayground makes the cluster and sees to it that it has memcached's image.
func (a *app) startPlayground(ctx context.Context) (*clusters.Cluster, error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return nil, err
	}
	a.Progress("starting a cluster, which takes some seconds")
	spec := a.Spec(owned, image)
	spec.Label, spec.Keep = playgroundLabel, true
	return owned.Create(ctx, spec)
}

// installCRDs brings the custom resource definitions of the workspace to the cluster.
func (a *app) installCRDs(ctx context.Context, c *clusters.Cluster) error {
	dir := filepath.Join(a.workspace, filepath.FromSlash(suite.ManifestDir))
	if _, err := os.Stat(dir); err != nil {
		a.Progress("the workspace has no CRD yet (lab 3 makes one), so none is installed")
		return nil //nolint:nilerr // a missing folder is where every workspace starts
	}
	manifests, err := generate.ReadManifests(dir)
	if err != nil {
		return err
	}
	config, err := c.RESTConfig()
	if err != nil {
		return err
	}
	api, err := crd.Connect(config)
	if err != nil {
		return fmt.Errorf("connect to cluster %s: %w", c.Name, err)
	}
	for _, m := range manifests {
		if m.Kind() != "CustomResourceDefinition" {
			continue
		}
		definition, err := m.Definition()
		if err != nil {
			return err
		}
		if err := crd.Install(ctx, api, definition); err != nil {
			return err
		}
		a.Progress("installed " + definition.Name)
	}
	return nil
}
