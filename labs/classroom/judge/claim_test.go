package judge

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/example/operator-lab/labs/classroom/hosting"
)

// A container on whose port nobody calls would be one that nobody claims, and so anybody's in the sandbox.
func TestAJudgeCallsAllContainersOfASandbox(t *testing.T) {
	var listens []string
	for text := range strings.SplitSeq(hosting.Options{}.Manifest(), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "SandboxTemplate" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "podTemplate", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range containers {
			command, _, err := unstructured.NestedStringSlice(c.(map[string]any), "command")
			if err != nil || len(command) != 4 {
				t.Fatalf("%v, %v", command, err)
			}
			listens = append(listens, command[2])
		}
	}
	if calls := slices.Concat(toolPorts, programPorts); !slices.Equal(calls, listens) {
		t.Errorf("it calls %v, they listen on %v", calls, listens)
	}
}
