package crd

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

func TestAreGenerated(t *testing.T) {
	right := manifests(t)
	for name, c := range map[string]struct {
		edit        workspacetest.Edit
		cause, seen string
	}{
		"the same":        {workspacetest.Replace(workspacetest.Manifest, "v0.23.0", "v0.20.0"), "", ""},
		"another bound":   {workspacetest.Replace(workspacetest.Manifest, "maximum: 5\n", "maximum: 9\n"), "stale", "schema: spec.size.maximum is 9, controller-gen makes it 5"},
		"no subresource":  {workspacetest.Replace(workspacetest.Manifest, "    subresources:\n      status: {}\n", ""), "stale", "subresources is absent"},
		"another name":    {workspacetest.Replace(workspacetest.Manifest, "name: memcacheds.cache", "name: caches.cache"), "stale", "only caches.cache.example.com"},
		"one of the past": {workspacetest.Write("config/crd/bases/old.yaml", "kind: CustomResourceDefinition\nmetadata: {name: old}\n"), "extra-manifest", "old (old.yaml)"},
	} {
		t.Run(name, func(t *testing.T) {
			findingtest.Require(t, areGenerated(manifests(t, c.edit), right), c.cause, c.seen)
		})
	}
	t.Run("a copy", func(t *testing.T) {
		findingtest.Require(t, areGenerated(append(manifests(t), right...), right), "extra-manifest", "")
	})
}

func manifests(t *testing.T, edits ...workspacetest.Edit) []generate.Manifest {
	t.Helper()
	all, err := generate.ReadManifests(workspacetest.New(t, edits...) + "/" + manifestDir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHasNames(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*apiextensionsv1.CustomResourceDefinition)
		cause string
	}{
		"right":              {func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		"another short name": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.AcceptedNames.ShortNames = []string{"mem"} }, "wrong-short-name"},
		"one more short name": {func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Status.AcceptedNames.ShortNames = []string{"a", "mc"}
		}, ""},
		"no short name":        {func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.AcceptedNames.ShortNames = nil }, "no-short-name"},
		"another group":        {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Group = "example.com" }, "wrong-group"},
		"another plural":       {func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.AcceptedNames.Plural = "caches" }, "wrong-plural"},
		"the cluster":          {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped }, "wrong-scope"},
		"a version not served": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false }, "wrong-version"},
	} {
		t.Run(name, func(t *testing.T) {
			definition, err := manifests(t)[0].Definition()
			if err != nil {
				t.Fatal(err)
			}
			definition.Status.AcceptedNames = definition.Spec.Names
			c.edit(definition)
			findingtest.Require(t, hasNames(definition), c.cause, "")
		})
	}
}

func TestShows(t *testing.T) {
	size := metav1.TableColumnDefinition{Name: "SIZE"}
	table := func(column metav1.TableColumnDefinition, cell any) *metav1.Table {
		return &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{size, column}, Rows: []metav1.TableRow{{Cells: []any{float64(3), cell}}}}
	}
	right := table(metav1.TableColumnDefinition{Name: "Age", Type: "date"}, "4s")
	findingtest.Require(t, shows(right, "Size", "3"), "", "")
	findingtest.Require(t, shows(right, "Age", age), "", "")
	findingtest.Require(t, shows(right, "Available", "True"), "missing-column", "SIZE AGE")
	findingtest.Require(t, shows(right, "Size", "4"), "wrong-value", "3")
	findingtest.Require(t, shows(table(metav1.TableColumnDefinition{Name: "Port", Priority: 1}, nil), "Port", "1"), "hidden-column", "-o wide")
	findingtest.Require(t, shows(table(metav1.TableColumnDefinition{Name: "Port"}, nil), "Port", "4"), "wrong-value", "nothing")
	findingtest.Require(t, shows(table(metav1.TableColumnDefinition{Name: "Age", Type: "string"}, "2026"), "Age", age), "wrong-value", "type string")
	findingtest.Require(t, shows(table(metav1.TableColumnDefinition{Name: "Available", Type: "boolean"}, nil), "Available", "True"), "wrong-type", "boolean")
}

func TestSamples(t *testing.T) {
	if all, err := samples(workspacetest.New(t)); err != nil || len(all) != 1 {
		t.Errorf("samples = %v, %v; want one", all, err)
	}
	_, err := samples(workspacetest.New(t, workspacetest.Remove(workspacetest.Sample)))
	findingtest.Require(t, err, "no-sample", "")
	_, err = samples(workspacetest.New(t, workspacetest.Write(workspacetest.Sample, "a: [")))
	findingtest.Require(t, err, "sample-refused", "cache_v1alpha1_memcached.yaml")
}
