package crd_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/harness/crd"
)

const definition = `
metadata: {name: memcacheds.cache.example.com}
spec:
  group: cache.example.com
  scope: Namespaced
  names: {kind: Memcached, plural: memcacheds, singular: memcached, listKind: MemcachedList}
  versions:
  - name: v1
    served: true
    storage: false
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              containerPort: {type: integer}
`

func parse(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(definition), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// resource is served by answers, by path.
func resource(t *testing.T, answers map[string]http.HandlerFunc) *crd.Resource {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, answer := range answers {
		mux.HandleFunc(pattern, answer)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r, err := crd.New(&rest.Config{Host: server.URL}, parse(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func answer(value any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
}

func TestStoredVersionIsUsed(t *testing.T) {
	r := resource(t, nil)
	if got := r.GroupVersion().String(); got != "cache.example.com/v1alpha1" {
		t.Errorf("GroupVersion = %s", got)
	}
	if obj := r.Object("ns", "a"); obj.GetAPIVersion() != "cache.example.com/v1alpha1" || obj.GetKind() != "Memcached" {
		t.Errorf("Object = %v", obj)
	}
	if !r.HasStatus() {
		t.Error("the status subresource of the stored version was not seen")
	}
}

func TestPropertyIsCaseSensitive(t *testing.T) {
	r := resource(t, nil)
	if got := r.Fields("spec"); got != "containerPort, size" {
		t.Errorf("fields of spec = %q", got)
	}
	if r.Property("spec", "size") == nil || r.Property("spec", "Size") != nil || r.Property("status", "conditions") != nil {
		t.Error("Property finds what is not there, or not what is")
	}
}

func TestRefusedNamesFields(t *testing.T) {
	kind := schema.GroupKind{Group: "cache.example.com", Kind: "Memcached"}
	size := field.ErrorList{field.Invalid(field.NewPath("spec", "size"), 7, "should be at most 5")}
	for name, c := range map[string]struct {
		err   error
		text  string
		about map[string]bool
	}{
		"one field": {apierrors.NewInvalid(kind, "a", size), "spec.size: Invalid value: 7: should be at most 5",
			map[string]bool{"spec.size": true, "spec": true, "spec.containerPort": false, "spec.sizes": false}},
		"a rule over the spec": {apierrors.NewInvalid(kind, "a", field.ErrorList{field.Invalid(field.NewPath("spec"), "object", "no")}), "spec: Invalid value: \"object\": no",
			map[string]bool{"spec.size": true, "status": false}},
		"an entry": {apierrors.NewInvalid(kind, "a", field.ErrorList{field.Duplicate(field.NewPath("status", "conditions").Index(1), "x")}), "status.conditions[1]: Duplicate value: \"x\"",
			map[string]bool{"status.conditions": true}},
		"an unknown field": {apierrors.NewBadRequest("unknown field \"spec.x\""), "unknown field \"spec.x\"",
			map[string]bool{"spec": false, "spec.x": true}},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := crd.Refused(c.err)
			if !ok || r.Text != c.text {
				t.Errorf("Refused = %q, %v; want %q", r.Text, ok, c.text)
			}
			for path, want := range c.about {
				if r.About(path) != want {
					t.Errorf("About(%s) = %v", path, !want)
				}
			}
		})
	}
}

func TestRefusedIgnoresOtherErrors(t *testing.T) {
	resource := schema.GroupResource{Resource: "memcacheds"}
	for _, err := range []error{
		nil, errors.New("connection refused"), context.DeadlineExceeded, apierrors.NewNotFound(resource, "a"),
		apierrors.NewConflict(resource, "a", errors.New("changed")), apierrors.NewInternalError(errors.New("oh")),
	} {
		if r, ok := crd.Refused(err); ok {
			t.Errorf("Refused(%v) = %v", err, r)
		}
	}
}

func TestColumnsStoreNothing(t *testing.T) {
	table := metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string"}, {Name: "Size", Type: "integer"}, {Name: "Port", Type: "integer", Priority: 1},
		},
		Rows: []metav1.TableRow{{Cells: []any{"a", 3, nil}}},
	}
	var asked *http.Request
	r := resource(t, map[string]http.HandlerFunc{
		"GET /apis/cache.example.com/v1alpha1/namespaces/ns/memcacheds/a": answer(table),
		"PATCH /apis/cache.example.com/v1alpha1/namespaces/ns/memcacheds/a/status": func(w http.ResponseWriter, req *http.Request) {
			asked = req
			answer(table)(w, req)
		},
	})
	columns, err := r.Columns(t.Context(), r.Object("ns", "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := columns.Headers(); got != "NAME SIZE PORT" {
		t.Errorf("headers = %s", got)
	}
	if size := columns.Get("sIZe"); size == nil || size.Cell != float64(3) || size.Wide {
		t.Errorf("size = %+v", size)
	}
	if port := columns.Get("Port"); port == nil || port.Cell != nil || !port.Wide {
		t.Errorf("port = %+v", port)
	}
	if columns.Get("Age") != nil {
		t.Error("found a column that is not there")
	}
	if _, err := r.Columns(t.Context(), r.Object("ns", "a"), map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if asked.URL.Query().Get("dryRun") != "All" {
		t.Errorf("a status was stored: %s", asked.URL)
	}
}

func TestDescriptionAwaitsOpenAPI(t *testing.T) {
	documents := 0
	text := func(s string) map[string]any { return map[string]any{"description": s} }
	kind := map[string]any{
		"description":                     "a group of servers",
		"x-kubernetes-group-version-kind": []any{map[string]any{"group": "cache.example.com", "kind": "Memcached", "version": "v1alpha1"}},
		"properties": map[string]any{"spec": map[string]any{"properties": map[string]any{
			"size": text("how many"), "containerPort": map[string]any{},
		}}},
	}
	r := resource(t, map[string]http.HandlerFunc{
		"/openapi/v3": func(w http.ResponseWriter, req *http.Request) {
			paths := map[string]any{}
			if documents++; documents > 1 { // published a moment later
				paths["apis/cache.example.com/v1alpha1"] = map[string]any{"serverRelativeURL": "/document"}
			}
			answer(map[string]any{"paths": paths})(w, req)
		},
		"/document": answer(map[string]any{"components": map[string]any{"schemas": map[string]any{"x": map[string]any{}, "m": kind}}}),
	})
	for path, want := range map[string]string{"": "a group of servers", "spec.size": "how many", "spec.containerPort": ""} {
		got, err := r.Description(t.Context(), split(path)...)
		if err != nil || got != want {
			t.Errorf("Description(%s) = %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := r.Description(t.Context(), "spec", "port"); err == nil || !strings.Contains(err.Error(), "memcached.spec.port") {
		t.Errorf("Description of a field that is not there = %v", err)
	}
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}
