package judge

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

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

// A judge that was killed has not given its sandbox back. The next Pod of its Job must not hold a second one.
func TestTheNextPodOfAJobTakesThePlaceOfItsClaim(t *testing.T) {
	claimOf := func(pod string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": claims.GroupVersion().String(), "kind": "SandboxClaim",
			"metadata": map[string]any{"name": "judge-x-sandbox", "namespace": "n", "labels": map[string]any{"pod": pod}},
		}}
	}
	for name, before := range map[string][]runtime.Object{"the first": nil, "the second": {claimOf("lost")}} {
		mine := fake.NewSimpleDynamicClient(runtime.NewScheme(), before...).Resource(claims).Namespace("n")
		if _, err := replace(t.Context(), mine, claimOf("today's")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := mine.Get(t.Context(), "judge-x-sandbox", metav1.GetOptions{})
		if err != nil || got.GetLabels()["pod"] != "today's" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A judge that was cut off may come to its end after the next Pod of its Job has begun.
func TestAJudgeGivesBackNoClaimOfAnother(t *testing.T) {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": claims.GroupVersion().String(), "kind": "SandboxClaim",
		"metadata": map[string]any{"name": "judge-x-sandbox", "namespace": "n", "uid": "today's"},
	}}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), claim)
	client.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if wanted := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions; wanted == nil || *wanted.UID == "today's" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(claims.GroupResource(), claim.GetName(), errors.New("the UID is another"))
	})
	mine := client.Resource(claims).Namespace("n")
	for _, tc := range []struct {
		uid   types.UID
		stays bool
	}{{"yesterday's", true}, {"today's", false}} {
		if err := giveBack(t.Context(), mine, claim.GetName(), tc.uid); err != nil {
			t.Errorf("%s: %v", tc.uid, err)
		}
		if _, err := mine.Get(t.Context(), claim.GetName(), metav1.GetOptions{}); (err == nil) != tc.stays {
			t.Errorf("after %s was given back: %v", tc.uid, err)
		}
	}
}
