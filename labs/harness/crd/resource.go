// Package crd talks to an API server about a custom resource whose definition is known and whose Go
// types are not: it sends objects as plain JSON, and uses discovery and tables as kubectl does.
package crd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Resource is one version of a custom resource on one API server.
type Resource struct {
	definition *apiextensionsv1.CustomResourceDefinition
	version    apiextensionsv1.CustomResourceDefinitionVersion
	config     *rest.Config
	discovery  *discovery.DiscoveryClient
	dynamic    dynamic.NamespaceableResourceInterface
}

// New makes the resource that definition describes, in its storage version.
func New(config *rest.Config, definition *apiextensionsv1.CustomResourceDefinition) (*Resource, error) {
	i := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if i < 0 {
		return nil, fmt.Errorf("definition %s stores no version", definition.Name)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	r := &Resource{definition: definition, version: definition.Spec.Versions[i], config: config}
	r.dynamic = client.Resource(r.GroupVersion().WithResource(definition.Spec.Names.Plural))
	r.discovery, err = discovery.NewDiscoveryClientForConfig(config)
	return r, err
}

// GroupVersion is the group and the version of the resource.
func (r *Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.definition.Spec.Group, Version: r.version.Name}
}

func (r *Resource) namespaced() bool {
	return r.definition.Spec.Scope == apiextensionsv1.NamespaceScoped
}

// In is a client for the resource's objects in a namespace. If the resource is not namespaced, it ignores namespace.
func (r *Resource) In(namespace string) dynamic.ResourceInterface {
	if !r.namespaced() {
		return r.dynamic
	}
	return r.dynamic.Namespace(namespace)
}

// Object makes an object without a spec.
func (r *Resource) Object(namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(r.GroupVersion().WithKind(r.definition.Spec.Names.Kind))
	obj.SetName(name)
	if r.namespaced() {
		obj.SetNamespace(namespace)
	}
	return obj
}

// Create creates obj, and returns what the API server has stored. validation is metav1.FieldValidationStrict, which
// refuses unknown fields, or metav1.FieldValidationIgnore, which drops them.
func (r *Resource) Create(ctx context.Context, obj *unstructured.Unstructured, validation string) (*unstructured.Unstructured, error) {
	created, err := r.In(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{FieldValidation: validation})
	if err != nil {
		return nil, err
	}
	return r.In(obj.GetNamespace()).Get(ctx, created.GetName(), metav1.GetOptions{})
}

// HasStatus says whether the definition has the status subresource.
func (r *Resource) HasStatus() bool {
	return r.version.Subresources != nil && r.version.Subresources.Status != nil
}

// Property is the schema of the field at path, nil if there is no such field. Without a path it is the schema of the kind.
func (r *Resource) Property(path ...string) *apiextensionsv1.JSONSchemaProps {
	if r.version.Schema == nil || r.version.Schema.OpenAPIV3Schema == nil {
		return nil
	}
	at := *r.version.Schema.OpenAPIV3Schema
	for _, name := range path {
		property, ok := at.Properties[name]
		if !ok {
			return nil
		}
		at = property
	}
	return &at
}

// Fields lists the fields below path in the schema, "none" if there are none.
func (r *Resource) Fields(path ...string) string {
	property := cmp.Or(r.Property(path...), &apiextensionsv1.JSONSchemaProps{})
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(property.Properties)), ", "), "none")
}

// Refusal is the API server's answer to an object that is not valid.
type Refusal struct {
	Text   string   // what is wrong, one line for each field
	fields []string // the paths of these fields, "" for the object as a whole
}

// Refused reads a refusal from an error. It returns false for every other error.
func Refused(err error) (Refusal, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !errors.As(err, &status) {
		return Refusal{}, false
	}
	var r Refusal
	var lines []string
	if details := status.Status().Details; details != nil && apierrors.IsInvalid(err) {
		for _, cause := range details.Causes {
			field := strings.TrimPrefix(cause.Field, "<nil>")
			r.fields = append(r.fields, field)
			lines = append(lines, strings.TrimPrefix(field+": "+cause.Message, ": "))
		}
	}
	r.Text = cmp.Or(strings.Join(lines, "\n"), status.Status().Message)
	return r, true
}

// About says whether the refusal concerns the field at path, such as spec.size, a field inside it, or an object around it: a rule over
// several fields is reported for their object. A refusal of unknown fields names them in its text only.
func (r Refusal) About(path string) bool {
	inside := func(path, outer string) bool {
		return strings.HasPrefix(path, outer+".") || strings.HasPrefix(path, outer+"[")
	}
	return strings.Contains(r.Text, `unknown field "`+path+`"`) || slices.ContainsFunc(r.fields, func(field string) bool {
		return field == "" || field == path || inside(field, path) || inside(path, field)
	})
}

// ServesStatus returns a finding with the cause "no-subresource" if discovery has no subresource /status.
func (r *Resource) ServesStatus() error {
	served, err := r.discovery.ServerResourcesForGroupVersion(r.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("ask for the resources of %s: %w", r.GroupVersion(), err)
	}
	var names []string
	for _, resource := range served.APIResources {
		if names = append(names, resource.Name); strings.HasSuffix(resource.Name, "/status") {
			return nil
		}
	}
	return finding.New("no-subresource", "a subresource `/status`", "the API server serves only: %s", strings.Join(names, ", "))
}

// AwaitServed waits until the API server serves the resource, which it does a moment after the definition became Established.
func (r *Resource) AwaitServed(ctx context.Context) error {
	return eventually(ctx, func(ctx context.Context) error {
		if _, err := r.dynamic.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("list %s: %w", r.definition.Name, err)
		}
		_, err := r.discovery.ServerResourcesForGroupVersion(r.GroupVersion().String())
		return err
	})
}

// eventually calls cond until it returns nil. After [installLimit] it returns the last error.
func eventually(ctx context.Context, cond func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, installLimit, true, func(ctx context.Context) (bool, error) {
		err := cond(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return cmp.Or(last, err)
	}
	return nil
}
