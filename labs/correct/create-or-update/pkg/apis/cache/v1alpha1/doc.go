// Package v1alpha1 is the API that users write: Memcached, in the group cache.example.com.
//
// +kubebuilder:object:generate=true
// +groupName=cache.example.com
package v1alpha1
