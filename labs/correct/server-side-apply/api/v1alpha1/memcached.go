package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.servers,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=mc
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Memcached is a group of memcached servers.
type Memcached struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is what every object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the user asks for.
	// +required
	Spec MemcachedSpec `json:"spec"`

	// status is what the operator found.
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedSpec is what the user asks for.
type MemcachedSpec struct {
	// size is the number of servers.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Size int32 `json:"size,omitempty"`

	// containerPort is the port on which each server listens.
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ContainerPort int32 `json:"containerPort,omitempty"`

	// optionsFrom is the ConfigMap with options of memcached. Its key connections is how many a server takes.
	// +optional
	OptionsFrom ConfigMapReference `json:"optionsFrom,omitzero"`
}

// ConfigMapReference is a ConfigMap in the same namespace.
type ConfigMapReference struct {
	// name is its name.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// MemcachedStatus is what the operator found.
type MemcachedStatus struct {
	// conditions tell how the servers are doing; Available is True while all of them are available.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// servers is the number of servers that there are.
	// +optional
	Servers int32 `json:"servers,omitempty"`

	// labelSelector selects their Pods.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// +kubebuilder:object:root=true

// MemcachedList is a list of Memcacheds.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Memcached `json:"items"`
}
