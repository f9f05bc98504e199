// Package kustomize is task 4 of the CKA practice: install from a kustomize base, with an overlay.
package kustomize

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

//go:embed base
var files embed.FS

// Program is the code of the task. The set-up writes the base anew; an overlay of an earlier attempt stays.
func Program() practice.Program {
	return practice.Program{Checks: map[string]practice.Check{"applied": applied, "customized": customized},
		Setup: func(ctx context.Context, s *practice.Setup) error {
			return errors.Join(os.RemoveAll(filepath.Join(s.Folder, "base")), os.CopyFS(s.Folder, files), s.Apply(ctx, "setup.yaml"))
		}}
}

func applied(ctx context.Context, r *practice.Reader) error {
	for _, name := range []string{"base/kustomization.yaml", "base/deployment.yaml", "base/service.yaml"} {
		want, _ := files.ReadFile(name) // it is in the program
		if have, err := os.ReadFile(filepath.Join(r.Folder, name)); err != nil || string(want) != string(have) {
			return finding.New("base-changed", "the files of base are as they were", "%s has changed", name)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(r.Folder, "overlay"))
	if err != nil {
		return finding.New("no-overlay", "kustomize builds the folder overlay", "%v", err)
	}
	for _, resource := range built.Resources() {
		want, live := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		text, err := resource.MarshalJSON() // resource.Map has other types of numbers than the API server
		err = errors.Join(err, want.UnmarshalJSON(text))
		live.SetGroupVersionKind(want.GroupVersionKind())
		err = errors.Join(err, r.Get(ctx, client.ObjectKey{Namespace: r.Values["namespace"], Name: want.GetName()}, live))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		expected := fmt.Sprintf("the %s %s in %s is what the overlay builds", want.GetKind(), want.GetName(), r.Values["namespace"])
		if live.GetUID() == "" {
			return finding.New("differs", expected, "there is none of that name")
		}
		if !equality.Semantic.DeepDerivative(want.Object, live.Object) {
			return finding.New("differs", expected, "it differs")
		}
	}
	return nil
}

func customized(ctx context.Context, r *practice.Reader) error {
	v, d, service, options, image := r.Values, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, ""
	key := client.ObjectKey{Namespace: v["namespace"], Name: v["prefix"] + "-cache"}
	err := errors.Join(r.Get(ctx, key, d), r.Get(ctx, key, service))
	for _, c := range d.Spec.Template.Spec.Containers {
		image = c.Image
		for _, from := range c.EnvFrom { // other ConfigMaps may be left of an earlier overlay
			name := ptr.Deref(from.ConfigMapRef, corev1.ConfigMapEnvSource{}).Name
			err = errors.Join(err, r.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, options))
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	for _, f := range []struct{ cause, what, want, have string }{
		{"prefix", "the name of the Deployment", key.Name, d.Name}, {"prefix", "the name of the Service", key.Name, service.Name},
		{"options", "the ConfigMap", "map[connections:" + v["connections"] + " verbosity:1]", fmt.Sprint(options.Data)},
		{"replicas", "the number of replicas", v["replicas"], fmt.Sprint(ptr.Deref(d.Spec.Replicas, 0))},
		{"image", "the image", "registry.example.com/memcached:" + v["tag"], image},
		{"label", "the label team of the Deployment", v["team"], d.Labels["team"]}, {"label", "the label team of the Service", v["team"], service.Labels["team"]},
		{"label", "the label team of the ConfigMap", v["team"], options.Labels["team"]},
	} {
		if f.have != f.want {
			return finding.New(f.cause, f.what+" is "+f.want, "it is %q", f.have)
		}
	}
	return nil
}
