package crd_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
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

// resource is a resource of a server that has answers, by path.
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
	if obj := r.Object("ns", "a"); obj.GetAPIVersion() != "cache.example.com/v1alpha1" || obj.GetKind() != "Memcached" || !r.HasStatus() {
		t.Errorf("Object = %v, HasStatus = %t", obj, r.HasStatus())
	}
	if got := r.Fields("spec"); got != "containerPort, size" || r.Property("spec", "Size") != nil {
		t.Errorf("fields of spec = %q", got)
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
		"a conflict":     {apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")), "", nil},
		"a broken link":  {errors.New("connection refused"), "", nil},
		"an error of it": {apierrors.NewInternalError(errors.New("oh")), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := crd.Refused(c.err)
			if ok != (c.text != "") || r.Text != c.text {
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

func TestTableStoresNothing(t *testing.T) {
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
	got, err := r.Table(t.Context(), r.Object("ns", "a"), nil)
	if err != nil || len(got.ColumnDefinitions) != 3 || got.Rows[0].Cells[1] != float64(3) {
		t.Errorf("table = %+v, %v", got, err)
	}
	if _, err := r.Table(t.Context(), r.Object("ns", "a"), map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if asked.URL.Query().Get("dryRun") != "All" {
		t.Errorf("a status was stored: %s", asked.URL)
	}
}
