// Package operator is task 1 of the CKA practice: install an operator from a kustomize base.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// repository is that of the operator's image.
const repository = "operator-lab.local/memcached-operator:"

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{"installed": installed, "serves": serves}}
}

// setUp writes the operator's manifests into the learner's folder. An overlay of an earlier attempt stays.
func setUp(ctx context.Context, s *practice.Setup) error {
	source, err := s.LoadOperator(ctx, repository+s.Values["tag"])
	if err != nil {
		return err
	}
	config := filepath.Join(s.Folder, "config")
	return errors.Join(os.RemoveAll(config), os.CopyFS(config, os.DirFS(filepath.Join(source, "config"))), s.Apply(ctx, "setup.yaml"))
}

func installed(ctx context.Context, r *practice.Reader) error {
	image := repository + r.Values["tag"]
	expected := fmt.Sprintf("the operator runs in the namespace %s alone, with the image %s", r.Values["namespace"], image)
	return r.Eventually(ctx, func(ctx context.Context) error {
		all := &appsv1.DeploymentList{}
		err := r.List(ctx, all, client.MatchingLabels{"control-plane": "controller-manager"}) // the label of the manifests
		if err == nil && len(all.Items) == 0 {
			return finding.New("missing", expected, "no Deployment of it is there")
		}
		for _, d := range all.Items {
			switch seen := d.Spec.Template.Spec.Containers[0].Image; {
			case d.Namespace != r.Values["namespace"]:
				return finding.New("other-namespace", expected, "its Deployment %s is in the namespace %s", d.Name, d.Namespace)
			case seen != image:
				return finding.New("image", expected, "its Deployment %s has the image %s", d.Name, seen)
			case d.Status.AvailableReplicas == 0:
				return finding.New("not-ready", expected, "its Deployment %s has no Pod that is ready", d.Name)
			}
		}
		return err
	})
}

func serves(ctx context.Context, r *practice.Reader) error {
	key, image := client.ObjectKey{Namespace: r.Values["team"], Name: r.Values["name"]}, r.Values["image"]
	expected := fmt.Sprintf("the operator runs %s Pods of the image %s for the Memcached %s", r.Values["size"], image, key)
	return r.Eventually(ctx, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		err := client.IgnoreNotFound(r.Get(ctx, key, d))
		owner := metav1.GetControllerOf(d)
		switch {
		case err != nil:
			return err
		case owner == nil || owner.Kind != "Memcached":
			return finding.New("no-deployment", expected, "it has made no Deployment for it")
		case d.Spec.Template.Spec.Containers[0].Image != image:
			return finding.New("environment", expected, "its Deployment has the image %s", d.Spec.Template.Spec.Containers[0].Image)
		case fmt.Sprint(d.Status.AvailableReplicas) != r.Values["size"]:
			return finding.New("not-ready", expected, "%d Pods are ready", d.Status.AvailableReplicas)
		}
		return nil
	})
}
