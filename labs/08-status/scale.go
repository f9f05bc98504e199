package status

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// servesScale wants a definition with a scale whose size is spec.size.
func servesScale(ctx context.Context) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := env.Admin().Get(ctx, types.NamespacedName{Name: env.Memcacheds + "." + suite.Group}, u); err != nil {
		return fmt.Errorf("get the definition: %w", err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, definition); err != nil {
		return fmt.Errorf("read the definition: %w", err)
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

// scaleOf reads the scale of a Memcached when it is polled.
func scaleOf(m env.Memcached) func(context.Context) (*autoscalingv1.Scale, error) {
	return env.Polled(m.Namespace, func(ctx context.Context) (*autoscalingv1.Scale, error) {
		obj, err := m.Get(ctx)
		if err != nil {
			return nil, fmt.Errorf("get Memcached %s: %w", m, err)
		}
		body, scale := scale(m, 0), &autoscalingv1.Scale{}
		if err := env.Admin().SubResource("scale").Get(ctx, obj, body); err != nil {
			return nil, fmt.Errorf("get the scale of Memcached %s: %w", m, err)
		}
		return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, scale)
	})
}

// scale is one that asks for a size.
func scale(m env.Memcached, size int32) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(size)}}}
	u.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	return u
}

// wantSize wants a scale that says what the Memcached's spec asks for.
func wantSize(size int32) *match.Matcher {
	return match.Make(func(s *autoscalingv1.Scale) error {
		if s.Spec.Replicas != size {
			return finding.New("wrong-specpath", fmt.Sprintf("spec.replicas %d of the scale, as the Memcached's spec.size", size), "spec.replicas %d", s.Spec.Replicas)
		}
		return nil
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

// countPodsOfBoth wants a scale that counts the Pods of the old and of the new template, as the Deployment does.
func countPodsOfBoth(ctx context.Context, m env.Memcached) *match.Matcher {
	read := env.DeploymentOf(m)
	return match.Make(func(s *autoscalingv1.Scale) error {
		d, err := read(ctx)
		if err == nil && s.Status.Replicas != d.Status.Replicas {
			err = finding.New("not-observed", fmt.Sprintf("status.replicas %d of the scale, as the Deployment counts during a rollout", d.Status.Replicas),
				"status.replicas %d; the Deployment has %d updated replicas", s.Status.Replicas, d.Status.UpdatedReplicas)
		}
		return err
	})
}

// selects is what is expected of a selector.
const selects = "status.selector of the scale picks the Pods of this Memcached and no others"

// haveSelector wants a scale with any selector.
func haveSelector() *match.Matcher {
	return match.Make(func(s *autoscalingv1.Scale) error {
		if s.Status.Selector == "" {
			return finding.New("no-selector", selects, "it is empty")
		}
		return nil
	})
}

// pickTheirOwn wants a selector that picks the Pods of one Deployment, and not those of another.
func pickTheirOwn(own, other *appsv1.Deployment) *match.Matcher {
	return match.Make(func(s *autoscalingv1.Scale) error {
		selector, err := labels.Parse(s.Status.Selector)
		switch {
		case err != nil:
			return finding.New("bad-selector", selects, "%q, which cannot be read as a label selector: %v", s.Status.Selector, err)
		case !selector.Matches(labels.Set(own.Spec.Template.Labels)):
			return finding.New("misses-its-pods", selects, "%q, and the Pods have the labels %v", selector, own.Spec.Template.Labels)
		case selector.Matches(labels.Set(other.Spec.Template.Labels)):
			return finding.New("selects-others", selects, "%q, which also picks the Pods of Memcached %s", selector, other.Name)
		}
		return nil
	})
}

// rescale asks for another size through the scale, as `kubectl scale` does.
func rescale(ctx context.Context, m env.Memcached, size int32) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return fmt.Errorf("get Memcached %s: %w", m, err)
	}
	return env.Admin().SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(scale(m, size)))
}

// askFor wants a Memcached whose spec asks for a size.
func askFor(cause, who string, size int32) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		if have := sizeOf(obj); have != size {
			return finding.New(cause, fmt.Sprintf("spec.size %d, as %s has set it", size, who), "spec.size %d", have)
		}
		return nil
	})
}

func sizeOf(obj *unstructured.Unstructured) int32 {
	size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
	return int32(size)
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

// autoscale makes an autoscaler with bounds for a Memcached. It enforces them before it asks for any metrics.
func autoscale(ctx context.Context, m env.Memcached, least, most int32) error {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: suite.Group + "/v1alpha1", Kind: suite.Kind, Name: m.Name},
			MinReplicas:    &least, MaxReplicas: most,
		},
	}
	return env.Admin().Create(ctx, hpa)
}

// autoscalerOf reads the autoscaler of a Memcached when it is polled.
func autoscalerOf(m env.Memcached) func(context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return env.Polled(m.Namespace, func(ctx context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		return hpa, env.Admin().Get(ctx, m.Key(), hpa)
	})
}

// beScaled wants a Memcached whose size an autoscaler has set.
func beScaled(ctx context.Context, m env.Memcached, size int32) *match.Matcher {
	read := autoscalerOf(m)
	return match.Make(func(obj *unstructured.Unstructured) error {
		have := sizeOf(obj)
		if have == size {
			return nil
		}
		hpa, err := read(ctx)
		if err != nil {
			return err
		}
		var told []string
		for _, c := range hpa.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				told = append(told, c.Reason+": "+c.Message)
			}
		}
		f := finding.New("not-autoscaled", fmt.Sprintf("an autoscaler sets spec.size to %d", size), "spec.size %d; the autoscaler says %q", have, strings.Join(told, "; "))
		if hpa.Status.LastScaleTime != nil {
			return f.WithCause("written-back")
		}
		return f
	})
}

// findThePods wants an autoscaler that has found a selector in the scale. What it lacks then are metrics, which this
// cluster has none of.
func findThePods() *match.Matcher {
	return match.Make(func(hpa *autoscalingv2.HorizontalPodAutoscaler) error {
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive && c.Reason == "InvalidSelector" {
				return env.Final(finding.New("no-selector", "an autoscaler finds the Pods by the selector of the scale", "it says: %s", c.Message))
			} else if c.Type == autoscalingv2.ScalingActive {
				return nil
			}
		}
		return errors.New("the autoscaler has not looked for Pods yet")
	})
}

// scaleDeployment changes the replicas of a Memcached's Deployment, as somebody with kubectl would.
func scaleDeployment(ctx context.Context, m env.Memcached, replicas int32) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	base := d.DeepCopy()
	d.Spec.Replicas = &replicas
	return env.Admin().Patch(ctx, d, client.MergeFrom(base))
}
