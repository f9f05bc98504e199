package status

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// apiVersion is that of Memcacheds.
const apiVersion = "cache.example.com/v1alpha1"

// servesScale wants a definition with a scale whose size is spec.size.
func servesScale(ctx context.Context) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := env.Admin().Get(ctx, types.NamespacedName{Name: "memcacheds.cache.example.com"}, definition); err != nil {
		return fmt.Errorf("get the definition: %w", err)
	}
	for _, v := range definition.Spec.Versions {
		switch {
		case !v.Served:
		case v.Subresources == nil || v.Subresources.Scale == nil:
			return finding.New("no-scale", "Memcacheds have a scale subresource", "the definition has none")
		case v.Subresources.Scale.SpecReplicasPath != ".spec.size":
			return finding.New("wrong-specpath", "a scale whose specpath is .spec.size", "%s", v.Subresources.Scale.SpecReplicasPath)
		}
	}
	return nil
}

// object is one of the Memcached's name.
func object(m env.Memcached, version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	return u
}

// scaleOf reads the scale of a Memcached when it is polled.
func scaleOf(m env.Memcached) func(context.Context) (*autoscalingv1.Scale, error) {
	return env.Polled(func(ctx context.Context) (*autoscalingv1.Scale, error) {
		read, scale := object(m, "autoscaling/v1", "Scale"), &autoscalingv1.Scale{}
		if err := env.Admin().SubResource("scale").Get(ctx, object(m, apiVersion, "Memcached"), read); err != nil {
			return nil, fmt.Errorf("get the scale of Memcached %s: %w", m, err)
		}
		return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, scale)
	})
}

// haveObserved wants a scale that counts the Pods that are there.
func haveObserved(pods int32) *match.Matcher {
	return match.Make(func(s *autoscalingv1.Scale) error {
		expected := fmt.Sprintf("status.replicas %d of the scale, as a quota lets %d of %d Pods exist", pods, pods, s.Spec.Replicas)
		switch s.Status.Replicas {
		case pods:
			return nil
		case s.Spec.Replicas:
			return finding.New("wanted-told", expected, "status.replicas %d, which is what was asked for", s.Status.Replicas)
		}
		return finding.New("not-observed", expected, "status.replicas %d", s.Status.Replicas)
	})
}

// pickPods wants a scale whose selector picks the Pods of one Deployment, and not those of another.
func pickPods(own, other *appsv1.Deployment) *match.Matcher {
	const expected = "status.selector of the scale picks the Pods of this Memcached and no others"
	return match.Make(func(s *autoscalingv1.Scale) error {
		selector, err := labels.Parse(s.Status.Selector)
		switch {
		case s.Status.Selector == "":
			return finding.New("no-selector", expected, "it is empty")
		case err != nil || !selector.Matches(labels.Set(own.Spec.Template.Labels)):
			return finding.New("bad-selector", expected, "%q, and the Pods have the labels %v", s.Status.Selector, own.Spec.Template.Labels)
		case selector.Matches(labels.Set(other.Spec.Template.Labels)):
			return finding.New("selects-others", expected, "%q, which also picks the Pods of Memcached %s", selector, other.Name)
		}
		return nil
	})
}

// rescale asks for another size through the scale, as `kubectl scale` and autoscalers do.
func rescale(ctx context.Context, m env.Memcached, size int32) error {
	scale := object(m, "autoscaling/v1", "Scale")
	scale.Object["spec"] = map[string]any{"replicas": int64(size)}
	return env.Admin().SubResource("scale").Update(ctx, object(m, apiVersion, "Memcached"), client.WithSubResourceBody(scale))
}

// refusesToScale wants the API server to hold the scale to the limits of spec.size.
func refusesToScale(ctx context.Context, m env.Memcached, size int32) error {
	err := rescale(ctx, m, size)
	if err == nil {
		return finding.New("not-refused", fmt.Sprintf("the API server refuses to scale to %d", size), "it took it")
	} else if apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// statusWrites counts the manager's writes of a Memcached's status since an index of its requests.
func statusWrites(m env.Memcached, since int) (made int) {
	for _, w := range m.Writes(since) {
		if w.Subresource == "status" && w.Written() {
			made++
		}
	}
	return made
}
