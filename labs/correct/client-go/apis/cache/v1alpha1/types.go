// Package v1alpha1 is version v1alpha1 of the group cache.example.com.
//
// +kubebuilder:object:generate=true
// +groupName=cache.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Memcached is a set of memcached servers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.scale.replicas,selectorpath=.status.scale.selector
// +kubebuilder:resource:path=memcacheds,singular=memcached,shortName=mc
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the user wants.
	Spec MemcachedSpec `json:"spec"`
	// Status says what there is.
	// +optional
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec says what the user wants.
type MemcachedSpec struct {
	// Size is how many servers there should be.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=5
	// +kubebuilder:default:=1
	Size int32 `json:"size,omitempty"`

	// ContainerPort is the port they should listen on.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=65535
	// +kubebuilder:default:=11211
	ContainerPort int32 `json:"containerPort,omitempty"`

	// OptionsFrom says where the options of the servers are.
	// +optional
	OptionsFrom *OptionsSource `json:"optionsFrom,omitempty"`
}

// OptionsSource is a ConfigMap of the same namespace. It says how many connections a server takes, under "connections".
type OptionsSource struct {
	// Name is the ConfigMap's.
	// +kubebuilder:validation:MinLength:=1
	Name string `json:"name"`
}

// MemcachedStatus says what there is.
type MemcachedStatus struct {
	// Conditions are Available, Progressing and Degraded, and Registered where there is a registry.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Scale is what autoscalers read.
	// +optional
	Scale ScaleStatus `json:"scale,omitempty"`
}

// ScaleStatus is what autoscalers read.
type ScaleStatus struct {
	// Replicas is how many Pods there are.
	Replicas int32 `json:"replicas"`
	// Selector selects them.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// MemcachedList is what a list request is answered with.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1alpha1"}

// Kind is the group, version and kind of a Memcached. Objects from a typed client do not say their own.
var Kind = GroupVersion.WithKind("Memcached")

// AddToScheme adds these types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
