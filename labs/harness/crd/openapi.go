package crd

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
)

// Description is what kubectl explain says about the field at path; no path is the kind itself. It is
// "" when the API server knows the field and says nothing, and an error when it does not know the
// field. The API server publishes its OpenAPI a moment after the definition, so it is waited for.
func (r *Resource) Description(ctx context.Context, path ...string) (string, error) {
	var kind map[string]any
	err := eventually(ctx, func(context.Context) (err error) {
		kind, err = r.published()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read OpenAPI: %w", err)
	}
	field, err := descend(kind, path)
	if err != nil {
		return "", fmt.Errorf("explain %s: %w", strings.Join(append([]string{r.definition.Spec.Names.Singular}, path...), "."), err)
	}
	text, _ := field["description"].(string)
	return text, nil
}

// published is the schema of the kind in the API server's OpenAPI v3.
func (r *Resource) published() (map[string]any, error) {
	client, err := discovery.NewDiscoveryClientForConfig(r.config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	document, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpecAsMap(r.GroupVersion())
	if err != nil {
		return nil, err
	}
	components, _ := document["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for _, schema := range schemas {
		if schema, ok := schema.(map[string]any); ok && r.describes(schema) {
			return schema, nil
		}
	}
	return nil, fmt.Errorf("the OpenAPI of %s does not have the kind %s", r.GroupVersion(), r.definition.Spec.Names.Kind)
}

// describes says whether a schema is that of the resource's kind.
func (r *Resource) describes(schema map[string]any) bool {
	kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
	for _, kind := range kinds {
		if kind, ok := kind.(map[string]any); ok && kind["kind"] == r.definition.Spec.Names.Kind && kind["group"] == r.definition.Spec.Group {
			return true
		}
	}
	return false
}

func descend(schema map[string]any, path []string) (map[string]any, error) {
	for _, name := range path {
		properties, _ := schema["properties"].(map[string]any)
		next, ok := properties[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("field %s does not exist", name)
		}
		schema = next
	}
	return schema, nil
}
