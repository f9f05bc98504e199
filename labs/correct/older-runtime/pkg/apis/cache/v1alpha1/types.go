package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=mc,categories=all
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Memcached asks for some memcached servers that share nothing.
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The wish.
	Spec Wish `json:"spec"`
	// What became of it.
	Status Report `json:"status,omitempty"`
}

// Wish is what the user wants.
type Wish struct {
	// How many servers.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Size int32 `json:"size,omitempty"`
	// Where they listen.
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ContainerPort int32 `json:"containerPort,omitempty"`
	// Where to read more: a ConfigMap, whose connections are how many each server may have.
	// +optional
	OptionsFrom *Source `json:"optionsFrom,omitempty"`
}

// Source is a ConfigMap nearby.
type Source struct {
	// What it is called.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Report is what the operator found.
type Report struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// For who scales: how many there are.
	Replicas int32 `json:"replicas,omitempty"`
	// For who scales: their labels.
	Selector string `json:"selector,omitempty"`
}

// +kubebuilder:object:root=true

// MemcachedList is what a list request answers.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}
