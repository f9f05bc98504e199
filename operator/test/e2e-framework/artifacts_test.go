// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// keepArtifacts keeps what explains a feature that has failed.
func keepArtifacts(ctx context.Context, cfg *envconf.Config, t *testing.T, feature types.Feature) (context.Context, error) {
	if !t.Failed() {
		return ctx, nil
	}
	return ctx, keep(ctx, cfg, strings.ReplaceAll(feature.Name(), " ", "-"))
}

// keep writes the objects that matter, and the manager's log, into a folder of its own below ARTIFACTS, or artifacts.
func keep(ctx context.Context, cfg *envconf.Config, name string) error {
	dir := filepath.Join(cmp.Or(os.Getenv("ARTIFACTS"), "artifacts"), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep artifacts: %w", err)
	}
	var errs []error
	for file, list := range map[string]k8s.ObjectList{
		"memcacheds.yaml":  &cachev1alpha1.MemcachedList{},
		"deployments.yaml": &appsv1.DeploymentList{},
		"pods.yaml":        &corev1.PodList{},
		"events.yaml":      &corev1.EventList{},
	} {
		err := cfg.Client().Resources().List(ctx, list)
		if err == nil {
			var data []byte
			if data, err = yaml.Marshal(list); err == nil {
				err = os.WriteFile(filepath.Join(dir, file), data, 0o600)
			}
		}
		errs = append(errs, err)
	}
	errs = append(errs, keepLogs(ctx, cfg, dir))
	fmt.Fprintln(os.Stderr, "What explains it is in", dir)
	return errors.Join(errs...)
}

// keepLogs writes the log of each of the manager's Pods.
func keepLogs(ctx context.Context, cfg *envconf.Config, dir string) error {
	clientset, err := kubernetes.NewForConfig(cfg.Client().RESTConfig())
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := cfg.Client().Resources(namespace).List(ctx, &pods); err != nil {
		return err
	}
	var errs []error
	for _, pod := range pods.Items {
		log, err := clientset.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, pod.Name+".log"), log, 0o600))
	}
	return errors.Join(errs...)
}
