package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/harness/generate"
)

const (
	// crdTimeout is how long the API server may take to serve a new resource. It takes less than a second.
	crdTimeout = 20 * time.Second
	// crdInterval is how often to ask whether it does.
	crdInterval = 100 * time.Millisecond
)

// installCRDs brings the custom resource definitions of the workspace to the cluster.
func (a *app) installCRDs(ctx context.Context, c *clusters.Cluster) error {
	dir := filepath.Join(a.workspace, filepath.FromSlash(harness.ManifestDir))
	if _, err := os.Stat(dir); err != nil {
		a.progress("the workspace has no CRD yet (lab 3 makes one), so none is installed")
		return nil
	}
	manifests, err := generate.ReadManifests(dir)
	if err != nil {
		return err
	}
	api, err := crdClient(c)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if m.Kind() != "CustomResourceDefinition" {
			continue
		}
		definition, err := m.Definition()
		if err != nil {
			return err
		}
		if err := installCRD(ctx, api, definition); err != nil {
			return err
		}
		a.progress("installed " + definition.Name)
	}
	return nil
}

func crdClient(c *clusters.Cluster) (client.Client, error) {
	config, err := clusters.RESTConfig(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", c.Name, err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", c.Name, err)
	}
	return api, nil
}

// installCRD creates the definition or brings the one that is there up to date, and waits until it is served.
func installCRD(ctx context.Context, api client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, api, crd, func() error {
		crd.Spec = definition.Spec
		return nil
	}); err != nil {
		return fmt.Errorf("install %s: %w", crd.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, crdInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
		if err := api.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return false, err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established {
				return c.Status == apiextensionsv1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w", crd.Name, err)
	}
	return nil
}
