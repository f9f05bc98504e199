package demo

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	namespace = "default" // what kubectl talks about when nobody says otherwise
	name      = "cache"
)

var kind = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}

// autoscaler is one that keeps the Memcached between one and three servers. It needs no metrics for these bounds.
func autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	version, kindName := kind.ToAPIVersionAndKind()
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: kindName, Name: name},
			MinReplicas:    new(int32(1)), MaxReplicas: 3,
		},
	}
}

// memcached is the custom resource of the demo.
func memcached(size int64) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	m.SetGroupVersionKind(kind)
	m.SetNamespace(namespace)
	m.SetName(name)
	return m
}
