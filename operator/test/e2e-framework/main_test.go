// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator as its users meet it: deployed into a cluster from config/default, and watched from
// outside. `make test-e2e` runs it on the cluster of KUBECONFIG, whose nodes have the image IMG.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/conf"
	"sigs.k8s.io/e2e-framework/klient/decoder"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

const (
	// namespace and manager are the names that config/default gives.
	namespace = "memcached-operator-system"
	manager   = "memcached-operator-controller-manager"

	// startTimeout is how long the manager may take to be ready: its image is on the node, its lease is free.
	startTimeout = 2 * time.Minute
	// podsTimeout is how long memcached may take to run, its image to be pulled included.
	podsTimeout = 2 * time.Minute
	// reactTimeout is how long the operator may take to answer a change.
	reactTimeout = 15 * time.Second
	pollInterval = 200 * time.Millisecond
)

var testenv env.Environment

func TestMain(m *testing.M) {
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme.Scheme))
	cfg, err := envconf.NewFromFlags()
	if err == nil && (os.Getenv("IMG") == "" || os.Getenv("KUBECONFIG") == "") {
		err = errors.New("set KUBECONFIG, and IMG to the image of the manager, which the nodes of the cluster have: make test-e2e IMG=<image>")
	}
	if err == nil {
		cfg.WithKubeconfigFile(conf.ResolveKubeConfigFile())
		err = noMemcacheds(context.Background(), cfg) // not a Setup: Finish follows one that fails, too
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv = env.NewWithConfig(cfg)
	testenv.Setup(deploy, awaitManager)
	testenv.AfterEachFeature(keepArtifacts)
	testenv.Finish(undeploy)
	os.Exit(testenv.Run(m))
}

// noMemcacheds is an error when the cluster has a Memcached: the tests remove the CRD in the end, and would delete it. One
// that goes with its namespace does not count.
func noMemcacheds(ctx context.Context, cfg *envconf.Config) error {
	c, err := cfg.NewClient()
	if err != nil {
		return err
	}
	var all cachev1alpha1.MemcachedList
	err = c.Resources().List(ctx, &all)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // no such resource
	}
	if err != nil {
		return fmt.Errorf("list the Memcacheds of the cluster: %w", err)
	}
	for _, m := range all.Items {
		var ns corev1.Namespace
		err := c.Resources().Get(ctx, m.Namespace, "", &ns)
		if apierrors.IsNotFound(err) || err == nil && ns.DeletionTimestamp != nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("get the namespace of Memcached %s: %w", m.Name, err)
		}
		return fmt.Errorf("the Memcached %s/%s of this cluster would be deleted: delete it, or use another cluster", m.Namespace, m.Name)
	}
	return nil
}

// deploy applies config/default, as `make deploy` does.
func deploy(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	c := cfg.Client().Resources().GetControllerRuntimeClient()
	return ctx, eachManifest(ctx, func(ctx context.Context, obj k8s.Object) error { return apply(ctx, c, obj) })
}

// apply makes an object what it should be, whether it is there already or not.
func apply(ctx context.Context, c client.Client, obj k8s.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	wanted := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	return c.Apply(ctx, wanted, client.FieldOwner("e2e"), client.ForceOwnership)
}

// undeploy removes all of it.
func undeploy(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	return ctx, eachManifest(ctx, decoder.DeleteIgnoreNotFound(cfg.Client().Resources()))
}

func eachManifest(ctx context.Context, handle decoder.HandlerFunc) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "kustomize", "build", "config/default")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	manifests, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("build config/default: %w", err)
	}
	return decoder.DecodeEach(ctx, bytes.NewReader(manifests), handle, decoder.MutateOption(useImages))
}

// useImages has the manager run from IMG, and memcached from MEMCACHED_IMAGE if that is set.
func useImages(obj k8s.Object) error {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Image = os.Getenv("IMG")
	for i, variable := range container.Env {
		if variable.Name == "MEMCACHED_IMAGE" {
			container.Env[i].Value = cmp.Or(os.Getenv("MEMCACHED_IMAGE"), variable.Value)
		}
	}
	return nil
}

// awaitManager waits until the manager is ready: its probe has succeeded, and it leads.
func awaitManager(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	available := conditions.New(cfg.Client().Resources()).DeploymentAvailable(manager, namespace)
	if err := wait.For(available, wait.WithContext(ctx), wait.WithTimeout(startTimeout), wait.WithInterval(pollInterval)); err != nil {
		return ctx, errors.Join(fmt.Errorf("wait for the manager: %w", err), keep(ctx, cfg, "setup"))
	}
	return ctx, nil
}
