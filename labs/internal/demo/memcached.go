package demo

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
