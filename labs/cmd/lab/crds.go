package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/suite"
)

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
	config, err := clusters.RESTConfig(c.Kubeconfig)
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
