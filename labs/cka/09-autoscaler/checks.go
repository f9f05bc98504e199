// Package autoscaler is task 9 of the CKA practice: autoscale a custom resource within bounds.
package autoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{"scale": hasScale, "autoscaler": autoscales}}
}

var definition = client.ObjectKey{Name: "memcacheds.cache.example.com"}

// setUp takes the scale from the definition.
func setUp(ctx context.Context, s *practice.Setup) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = definition.Name
	remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/versions/0/subresources/scale"}]`))
	return errors.Join(s.InstallCRD(ctx), s.Patch(ctx, crd, remove), s.Apply(ctx, "setup.yaml"))
}

func hasScale(ctx context.Context, r *practice.Reader) error {
	_, lost := r.Raw(ctx, "/apis/cache.example.com/v1alpha1/namespaces/"+r.Values["namespace"]+"/memcacheds/cache")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := errors.Join(lost, r.Get(ctx, definition, crd))
	if apierrors.IsNotFound(err) {
		return finding.New("objects-lost", "the definition and the Memcached cache", "%v", err)
	}
	if err != nil {
		return err
	}
	sub := ptr.Deref(crd.Spec.Versions[0].Subresources, apiextensionsv1.CustomResourceSubresources{})
	scale := ptr.Deref(sub.Scale, apiextensionsv1.CustomResourceSubresourceScale{})
	expected := "a scale with the paths [.spec.size .status.replicas .status.selector]"
	seen := fmt.Sprintf("a scale with the paths [%s %s %s]", scale.SpecReplicasPath, scale.StatusReplicasPath, ptr.Deref(scale.LabelSelectorPath, ""))
	switch {
	case sub.Scale == nil:
		return finding.New("no-scale", expected, "the definition has no scale")
	case seen != expected:
		return finding.New("wrong-path", expected, "%s", seen)
	case sub.Status == nil:
		return finding.New("status-lost", "the subresources status and scale", "scale alone")
	}
	return nil
}

func autoscales(ctx context.Context, r *practice.Reader) error {
	v, hpa, cpu := r.Values, &autoscalingv2.HorizontalPodAutoscaler{}, int32(0)
	err := r.Get(ctx, client.ObjectKey{Namespace: v["namespace"], Name: v["name"]}, hpa)
	if apierrors.IsNotFound(err) {
		return finding.New("missing", "the HorizontalPodAutoscaler "+v["name"], "there is none in the namespace %s", v["namespace"])
	}
	if err != nil {
		return err
	}
	for _, m := range hpa.Spec.Metrics {
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU {
			cpu = ptr.Deref(m.Resource.Target.AverageUtilization, 0)
		}
	}
	target := hpa.Spec.ScaleTargetRef
	for _, f := range []struct{ cause, expected, seen string }{
		{"wrong-target", "it scales the cache.example.com/v1alpha1 Memcached cache", fmt.Sprintf("it scales the %s %s %s", target.APIVersion, target.Kind, target.Name)},
		{"bounds", v["least"] + " to " + v["most"] + " replicas", fmt.Sprintf("%d to %d replicas", ptr.Deref(hpa.Spec.MinReplicas, 1), hpa.Spec.MaxReplicas)},
		{"metric", "a CPU utilization of " + v["cpu"] + " percent", fmt.Sprintf("a CPU utilization of %d percent", cpu)},
	} {
		if f.seen != f.expected {
			return finding.New(f.cause, f.expected, "%s", f.seen)
		}
	}
	return nil
}
