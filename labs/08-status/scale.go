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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// wantsScale is what is expected where there is no scale subresource.
const wantsScale = "Memcacheds have a scale subresource"

// noScale is a finding when err says that there is no scale subresource, or that its paths lead nowhere or to something else,
// which the API server calls errors of its own. Otherwise it is err.
func noScale(err error) error {
	if apierrors.IsNotFound(err) {
		return finding.New("no-scale", wantsScale, "%v", err)
	}
	if apierrors.IsInternalError(err) && strings.Contains(err.Error(), "spec replicas field") {
		return finding.New("wrong-specpath", "a scale whose specpath leads to spec.size", "%v", err)
	}
	if apierrors.IsInternalError(err) && strings.Contains(err.Error(), "accessor error") { // a default can have any type
		return finding.New("other", "a scale whose paths lead to numbers and to a text", "%v", err)
	}
	return err
}

// getScale reads the scale of a Memcached.
func getScale(ctx context.Context, m env.Memcached) (*autoscalingv1.Scale, error) {
	obj, err := m.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("get Memcached %s: %w", m, err)
	}
	body := &unstructured.Unstructured{}
	body.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	if err := env.Admin().SubResource("scale").Get(ctx, obj, body); err != nil {
		return nil, noScale(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, scale); err != nil {
		return nil, fmt.Errorf("read the scale of Memcached %s: %w", m, err)
	}
	return scale, nil
}

// observed is a scale, or a finding in place of one.
type observed struct {
	*autoscalingv1.Scale
	missing error
}

// scaleOf reads the scale of a Memcached when it is polled.
func scaleOf(m env.Memcached) func(context.Context) (observed, error) {
	return env.Polled(m.Namespace, func(ctx context.Context) (observed, error) {
		scale, err := getScale(ctx, m)
		if _, missing := errors.AsType[*finding.Finding](err); missing {
			return observed{missing: err}, nil
		}
		return observed{Scale: scale}, err
	})
}

// scaled makes a matcher of a condition for a scale.
func scaled(condition func(*autoscalingv1.Scale) error) *match.Matcher {
	return match.Make(func(o observed) error {
		if o.missing != nil {
			return env.Final(o.missing) // which no wait brings
		}
		return condition(o.Scale)
	})
}

// wantSize wants a scale that says what the Memcached's spec asks for.
func wantSize(size int32) *match.Matcher {
	return scaled(func(s *autoscalingv1.Scale) error {
		if s.Spec.Replicas != size {
			return finding.New("wrong-specpath", fmt.Sprintf("spec.replicas %d of the scale, as the Memcached's spec.size", size), "spec.replicas %d", s.Spec.Replicas)
		}
		return nil
	})
}

// haveObserved wants a scale that counts the Pods that are there.
func haveObserved(pods int32) *match.Matcher {
	return scaled(func(s *autoscalingv1.Scale) error {
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
	return scaled(func(s *autoscalingv1.Scale) error {
		d, err := read(ctx)
		if err == nil && s.Status.Replicas != d.Status.Replicas {
			err = finding.New("not-observed", fmt.Sprintf("status.replicas %d of the scale, as the Deployment counts during a rollout", d.Status.Replicas),
				"status.replicas %d; the Deployment has %d updated replicas", s.Status.Replicas, d.Status.UpdatedReplicas)
		}
		return err
	})
}

// longestSelector is how many characters of a selector are read. One of two labels has about 80.
const longestSelector = 4096

// selects is what is expected of a selector.
const selects = "status.selector of the scale picks the Pods of this Memcached and no others"

// haveSelector wants a scale with any selector.
func haveSelector() *match.Matcher {
	return scaled(hasSelector)
}

func hasSelector(s *autoscalingv1.Scale) error {
	if s.Status.Selector == "" {
		return finding.New("no-selector", selects, "it is empty")
	}
	return nil
}

// pickTheirOwn wants a selector that picks the Pods of one Deployment, and not those of another.
func pickTheirOwn(own, other *appsv1.Deployment) *match.Matcher {
	return scaled(func(s *autoscalingv1.Scale) error {
		if err := hasSelector(s); err != nil {
			return err
		}
		text := s.Status.Selector
		if len(text) > longestSelector {
			return finding.New("bad-selector", selects, "it has %d characters", len(text))
		}
		selector, err := labels.Parse(text)
		switch {
		case err != nil:
			return finding.New("bad-selector", selects, "%q, which cannot be read as a label selector: %v", text, err)
		case !selector.Matches(labels.Set(own.Spec.Template.Labels)):
			return finding.New("misses-its-pods", selects, "%q, and the Pods have the labels %v", text, own.Spec.Template.Labels)
		case selector.Matches(labels.Set(other.Spec.Template.Labels)):
			return finding.New("selects-others", selects, "%q, which also picks the Pods of Memcached %s", text, other.Name)
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
	body := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(size)}}}
	body.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	body.SetName(m.Name)
	body.SetNamespace(m.Namespace)
	return noScale(env.Admin().SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(body)))
}

// asksFor wants a Memcached whose spec asks for a size after it was scaled.
func asksFor(ctx context.Context, m env.Memcached, size int32) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return fmt.Errorf("get Memcached %s: %w", m, err)
	}
	if have := sizeOf(obj); have != size {
		return finding.New("wrong-specpath", fmt.Sprintf("spec.size %d, as the scale was set to", size), "spec.size %d", have)
	}
	return nil
}

func sizeOf(obj *unstructured.Unstructured) int32 {
	size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
	return int32(size)
}

// refusesToScale wants the API server to hold the scale to the limits of spec.size.
func refusesToScale(ctx context.Context, m env.Memcached, size int32) error {
	err := rescale(ctx, m, size)
	switch {
	case err == nil:
		return finding.New("not-refused", fmt.Sprintf("the API server refuses to scale to %d", size), "it took it")
	case apierrors.IsInvalid(err):
		return nil
	}
	return err
}

// autoscale makes an autoscaler with bounds for a Memcached. It enforces them before it asks for any metrics.
func autoscale(ctx context.Context, m env.Memcached, least, most int32) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return fmt.Errorf("get Memcached %s: %w", m, err)
	}
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Name: m.Name},
			MinReplicas:    &least, MaxReplicas: most,
		},
	}
	if err := env.Admin().Create(ctx, hpa); err != nil {
		return fmt.Errorf("create autoscaler: %w", err)
	}
	return nil
}

// autoscalerOf reads the autoscaler of a Memcached when it is polled.
func autoscalerOf(m env.Memcached) func(context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return env.Polled(m.Namespace, func(ctx context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := env.Admin().Get(ctx, m.Key(), hpa); err != nil {
			return nil, fmt.Errorf("get autoscaler: %w", err)
		}
		return hpa, nil
	})
}

// toldBy is what an autoscaler says in its conditions.
func toldBy(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	var told []string
	for _, c := range hpa.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			told = append(told, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	if len(told) == 0 {
		return "nothing"
	}
	return strings.Join(told, "; ")
}

// beScaled wants an autoscaler to have set spec.size.
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
		f := finding.New("not-autoscaled", fmt.Sprintf("an autoscaler sets spec.size to %d", size), "spec.size %d; the autoscaler says: %s", have, toldBy(hpa))
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
		const expected = "an autoscaler finds the Pods by the selector of the scale"
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive && c.Reason == "InvalidSelector" {
				return env.Final(finding.New("no-selector", expected, "it says: %s", c.Message))
			} else if c.Type == autoscalingv2.ScalingActive {
				return nil
			}
		}
		return errors.New("the autoscaler has not looked for Pods yet")
	})
}

// keepSize wants the size that an autoscaler has set to stay.
func keepSize(size int32) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		if have := sizeOf(obj); have != size {
			return finding.New("written-back", fmt.Sprintf("spec.size stays %d, as the autoscaler has set it", size), "spec.size %d", have)
		}
		return nil
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
	if err := env.Admin().Patch(ctx, d, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("scale Deployment %s: %w", m, err)
	}
	return nil
}
