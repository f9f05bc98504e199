package owns

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Each field of an owner reference has to be right for the garbage collector to find the owner.
func TestDifferencesOfOwnerReference(t *testing.T) {
	owner := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
		"metadata": map[string]any{"name": "tea", "uid": "1"},
	}}
	right := metav1.OwnerReference{APIVersion: "cache.example.com/v1alpha1", Kind: "Memcached", Name: "tea", UID: "1"}
	if fields := differences(right, owner); len(fields) > 0 {
		t.Errorf("the right reference differs in %v", fields)
	}
	for path, change := range map[string]func(*metav1.OwnerReference){
		"apiVersion": func(r *metav1.OwnerReference) { r.APIVersion = "v1alpha1" },
		"kind":       func(r *metav1.OwnerReference) { r.Kind = "memcached" },
		"name":       func(r *metav1.OwnerReference) { r.Name = "coffee" },
		"uid":        func(r *metav1.OwnerReference) { r.UID = "2" },
	} {
		ref := right
		change(&ref)
		fields := differences(ref, owner)
		if len(fields) != 1 || fields[0].Path != "metadata.ownerReferences[0]."+path || fields[0].Want == fields[0].Have {
			t.Errorf("a reference with another %s differs in %v", path, fields)
		}
	}
}
