package generate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

func TestStaleNamesFields(t *testing.T) {
	for name, c := range map[string]struct{ old, new, seen string }{
		"another version of the generator": {"v0.23.0", "v0.16.1", ""},
		"what a cluster adds":              {"spec:\n  group", "status: {storedVersions: [v1alpha1]}\nspec:\n  group", ""},
		"a changed bound":                  {"maximum: 5\n", "maximum: 9\n", "schema: spec.size.maximum is 9, controller-gen makes it 5"},
		"a missing short name":             {"    shortNames:\n    - mc\n", "", `spec.names.shortNames is absent, controller-gen makes it ["mc"]`},
		"an added column": {"  - additionalPrinterColumns:\n", "  - additionalPrinterColumns:\n    - {name: Port, type: integer, jsonPath: .x}\n",
			`spec.versions[v1alpha1].additionalPrinterColumns[Port] is {"jsonPath":".x","name":"Port","type":"integer"}, controller-gen makes it absent`},
	} {
		t.Run(name, func(t *testing.T) {
			right := workspacetest.New(t)
			wrong := workspacetest.New(t, workspacetest.Replace(workspacetest.Manifest, c.old, c.new))
			cause := ""
			if c.seen != "" {
				cause = "stale"
			}
			findingtest.Require(t, generate.Stale(manifest(t, wrong), manifest(t, right), "x"), cause, c.seen)
		})
	}
}

func TestCompareMatchesConditionsByType(t *testing.T) {
	condition := func(kind, status string) any { return map[string]any{"type": kind, "status": status} }
	got := generate.Compare(
		map[string]any{"conditions": []any{condition("Available", "True"), condition("Degraded", "False")}},
		map[string]any{"conditions": []any{condition("Degraded", "False"), condition("Available", "False")}},
	)
	want := []finding.Field{{Path: "conditions[Available].status", Have: `"True"`, Want: `"False"`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func manifest(t *testing.T, workspace string) generate.Manifest {
	t.Helper()
	all, err := generate.ReadManifests(workspace + "/config/crd/bases")
	if err != nil || len(all) != 1 {
		t.Fatalf("ReadManifests = %v, %v; want one", all, err)
	}
	return all[0]
}

func TestCompareWithMissingObject(t *testing.T) {
	var gone map[string]any
	want := []finding.Field{{Path: "a", Have: "absent", Want: "1"}}
	if diff := cmp.Diff(want, generate.Compare(gone, map[string]any{"a": 1})); diff != "" {
		t.Error(diff)
	}
}

func TestReadManifests(t *testing.T) {
	for name, c := range map[string]struct {
		edit workspacetest.Edit
		want string
	}{
		"no folder":       {workspacetest.Remove("config"), "0"},
		"two in one file": {workspacetest.Write("config/crd/bases/a.yml", "a: 1\n---\nb: 2\n---\n"), "3"},
		"other files":     {workspacetest.Write("config/crd/bases/README.md", "# no: yaml: [\n"), "1"},
		"no YAML":         {workspacetest.Write("config/crd/bases/a.yaml", "a: [\n"), "a.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := generate.ReadManifests(workspacetest.New(t, c.edit) + "/config/crd/bases")
			if got := fmt.Sprint(len(all), err); !strings.Contains(got, c.want) {
				t.Errorf("ReadManifests gives %s, want %s", got, c.want)
			}
		})
	}
}

// For the API server, "Maximum" is not "maximum".
func TestDefinitionFieldsAreKnownAndCaseSensitive(t *testing.T) {
	for _, wrong := range []string{"scoop: Namespaced", "Scope: Namespaced"} {
		workspace := workspacetest.New(t, workspacetest.Replace(workspacetest.Manifest, "scope: Namespaced", wrong))
		if _, err := manifest(t, workspace).Definition(); err == nil || !strings.Contains(err.Error(), wrong[:5]) {
			t.Errorf("Definition = %v, want it to name the field %s", err, wrong[:5])
		}
	}
}
