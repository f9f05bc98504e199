package demo

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	namespace = "default" // what kubectl talks about when nobody says otherwise
	name      = "cache"
)

var kind = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}

// memcached is the custom resource of the demo.
func memcached(size int64) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	m.SetGroupVersionKind(kind)
	m.SetNamespace(namespace)
	m.SetName(name)
	return m
}

func sizeOf(m *unstructured.Unstructured) int64 {
	size, _, _ := unstructured.NestedInt64(m.Object, "spec", "size")
	return size
}

// conditionOf is the condition Available, empty when there is none.
func conditionOf(m *unstructured.Unstructured) metav1.Condition {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &typed); err != nil {
		return metav1.Condition{}
	}
	if c := meta.FindStatusCondition(typed.Status.Conditions, "Available"); c != nil {
		return *c
	}
	return metav1.Condition{}
}
