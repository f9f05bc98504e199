// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// lab:12 begin memory-rule Bind maxItemSize to memory, in a rule of the definition (a marker).
// +kubebuilder:validation:XValidation:rule="!has(self.maxItemSize) || self.maxItemSize * 2 <= (has(self.memory) ? self.memory : 64)",message="maxItemSize is at most half of memory, which is 64 if it is not given"
// lab:12 end

// MemcachedSpec is the desired state: what a user asks for.
// Every field needs a JSON tag.
type MemcachedSpec struct {
	// lab:1 begin spec-fields Add size (int32, 1 to 5, default 1) and containerPort (int32, 1 to 65535, default 11211).

	// lab:3 begin spec-descriptions Describe both fields: kubectl explain shows their comments.

	// size is the number of memcached Pods.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Size int32 `json:"size,omitempty"`

	// containerPort is the port on which memcached listens in every Pod.
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ContainerPort int32 `json:"containerPort,omitempty"`

	// lab:3 before
	// // +kubebuilder:default=1
	// // +kubebuilder:validation:Minimum=1
	// // +kubebuilder:validation:Maximum=5
	// // +optional
	// Size int32 `json:"size,omitempty"`
	//
	// // +kubebuilder:default=11211
	// // +kubebuilder:validation:Minimum=1
	// // +kubebuilder:validation:Maximum=65535
	// // +optional
	// ContainerPort int32 `json:"containerPort,omitempty"`
	// lab:3 end

	// lab:1 end

	// lab:9 begin options-from Add optionsFrom, an optional reference to a ConfigMap, with its type below.

	// optionsFrom names the ConfigMap that has options of memcached. Its key
	// "connections" is the greatest number of connections at a time.
	// +optional
	OptionsFrom OptionsReference `json:"optionsFrom,omitzero"`

	// lab:9 end

	// lab:12 begin memory Add memory and maxItemSize, both int32 and optional, in MiB, with bounds.

	// memory is how much memcached keeps, in MiB. A webhook fills in what the
	// namespace of a new Memcached asks for. Without it, memcached keeps 64 MiB.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=65536
	// +optional
	Memory int32 `json:"memory,omitempty"`

	// maxItemSize is the size of the largest value, in MiB. It is at most half of
	// the memory.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MaxItemSize int32 `json:"maxItemSize,omitempty"`

	// lab:12 end
}

// lab:9 begin options-reference

// OptionsReference names a ConfigMap in the namespace of the Memcached.
type OptionsReference struct {
	// name is that of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// lab:9 end

// MemcachedStatus is the observed state: what the operator saw last.
// Only the operator writes it.
type MemcachedStatus struct {
	// lab:1 begin status-conditions Add conditions, a list of metav1.Condition that is a map by type.

	// conditions tell how the Memcached is doing. Available is True while all
	// its Pods are ready to serve.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lab:1 end

	// lab:8 begin scale-status Add replicas (int32) and selector (a string), both optional, with a comment each.

	// replicas is the number of Pods that there are, ready or not.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// selector is the label selector of these Pods, as autoscalers read it.
	// +optional
	Selector string `json:"selector,omitempty"`

	// lab:8 end
}

// +kubebuilder:object:root=true
// lab:1 begin status-subresource Serve the status at an endpoint of its own (a marker).
// +kubebuilder:subresource:status
// lab:1 end
// lab:8 begin scale-subresource Serve a scale subresource: where the wanted size, the Pods and their selector are (a marker).
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// lab:8 end
// lab:3 begin names-and-columns Add the short name mc and the columns Size, Available and Age (four markers).
// +kubebuilder:resource:shortName=mc
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// lab:3 end

// Memcached is a group of memcached servers.
type Memcached struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is what every Kubernetes object has: name, labels, owners.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// lab:1 begin spec-required Make spec required: defaults do not reach into a spec that is not there.

	// spec is the desired state of the Memcached.
	// +required
	Spec MemcachedSpec `json:"spec"`

	// lab:1 before
	// // spec is the desired state of the Memcached.
	// // +optional
	// Spec MemcachedSpec `json:"spec,omitzero"`
	// lab:1 end

	// status is the observed state of the Memcached.
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// MemcachedList is a list of Memcacheds.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Memcached `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(SchemeGroupVersion, &Memcached{}, &MemcachedList{})
		return nil
	})
}
