package crd

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Description is what kubectl explain says about the field at path; no path is the kind itself. It is "" when the API server knows
// the field and says nothing, and an error when it does not know the field. The API server publishes its OpenAPI a moment after
// the definition, so Description waits for it.
func (r *Resource) Description(ctx context.Context, path ...string) (string, error) {
	var field *spec.Schema
	err := eventually(ctx, func(context.Context) (err error) {
		field, err = r.published()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read OpenAPI: %w", err)
	}
	for _, name := range path {
		property, ok := field.Properties[name]
		if !ok {
			return "", fmt.Errorf("explain %s.%s: there is no field %s", r.definition.Spec.Names.Singular, strings.Join(path, "."), name)
		}
		field = &property
	}
	return field.Description, nil
}

// published is the schema of the kind in the API server's OpenAPI v3.
func (r *Resource) published() (*spec.Schema, error) {
	document, err := openapi3.NewRoot(r.discovery.OpenAPIV3()).GVSpec(r.GroupVersion())
	if err != nil {
		return nil, err
	}
	if document.Components != nil {
		for _, schema := range document.Components.Schemas {
			kinds, _ := schema.Extensions["x-kubernetes-group-version-kind"].([]any)
			for _, kind := range kinds {
				kind, _ := kind.(map[string]any)
				if kind["kind"] == r.definition.Spec.Names.Kind && kind["group"] == r.definition.Spec.Group {
					return schema, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("the OpenAPI of %s does not have the kind %s", r.GroupVersion(), r.definition.Spec.Names.Kind)
}
