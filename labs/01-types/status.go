package types

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/internal/finding"
)

// condition is a whole Kubernetes condition. Its reason tells one writer's from another's.
func condition(conditionType, reason string) map[string]any {
	return map[string]any{
		"type": conditionType, "status": "True", "reason": reason, "message": "written by a check",
		"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": int64(1),
	}
}

// conditions are the type and reason of every condition in obj, sorted; "nothing" when there is none.
func conditions(obj *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var all []string
	for _, entry := range list {
		entry, _ := entry.(map[string]any)
		all = append(all, fmt.Sprintf("%v/%v", entry["type"], entry["reason"]))
	}
	if len(all) == 0 {
		return "nothing"
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// status are the subresources to write the status through: the status subresource if it is served. A
// check about conditions is not also one about the subresource.
func (m memcacheds) status() []string {
	if m.HasStatus() {
		return []string{"status"}
	}
	return nil
}

// hasConditions asks whether the schema knows the conditions at all.
func (m memcacheds) hasConditions() error {
	if m.Property("status", "conditions") != nil {
		return nil
	}
	return finding.New("no-conditions", "a list `status.conditions`", "the fields of your status are: %s", m.Fields("status"))
}

// mergesConditions asks whether two writers who each apply a condition of their own leave each other's
// alone.
func (m memcacheds) mergesConditions(ctx context.Context, obj *unstructured.Unstructured, first, second string) error {
	const expected = "two writers, each with a condition of its own in `status.conditions`, who keep each other's"
	if _, err := m.apply(ctx, obj, "First", first); err != nil {
		return finding.New("wrong-shape", "`status.conditions` that take a Kubernetes condition", "refused: %v", err)
	}
	stored, err := m.apply(ctx, obj, "Second", second)
	switch {
	case apierrors.IsConflict(err):
		return finding.New(m.atomicOrKeyed(), expected, "the second writer gets a conflict: %v", err)
	case err != nil:
		return finding.New("one-condition-only", expected, "the second one is refused: %v", err)
	}
	if got, want := conditions(stored), first+"/First, "+second+"/Second"; got != want {
		return finding.New(m.atomicOrKeyed(), expected, "of %s, only this is left: %s", want, got)
	}
	return nil
}

// apply sends one condition by server-side apply.
func (m memcacheds) apply(ctx context.Context, obj *unstructured.Unstructured, writer, conditionType string) (*unstructured.Unstructured, error) {
	applied := m.Object(m.namespace, obj.GetName())
	if !m.HasStatus() {
		applied.Object["spec"] = obj.Object["spec"] // a required spec is required here, too
	}
	applied.Object["status"] = map[string]any{"conditions": []any{condition(conditionType, writer)}}
	return m.In(m.namespace).Apply(ctx, obj.GetName(), applied, metav1.ApplyOptions{FieldManager: strings.ToLower(writer)}, m.status()...)
}

// atomicOrKeyed is why two conditions did not get along.
func (m memcacheds) atomicOrKeyed() string {
	list := m.Property("status", "conditions")
	if list.XListType != nil && *list.XListType == "map" && !slices.Equal(list.XListMapKeys, []string{"type"}) {
		return "wrong-key"
	}
	return "atomic-list"
}

// refusesDuplicates asks whether two conditions of one type are refused.
func (m memcacheds) refusesDuplicates(ctx context.Context, obj *unstructured.Unstructured, conditionType string) error {
	expected := fmt.Sprintf("two conditions of the type %s refused", conditionType)
	one, two := condition(conditionType, "One"), condition(conditionType, "Two")
	// They have nothing in common but the type.
	two["status"], two["message"], two["observedGeneration"] = "False", "written once more by a check", int64(2)
	two["lastTransitionTime"] = "2026-02-03T04:05:06Z"
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{one, two}}})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	stored, err := m.In(m.namespace).Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, m.status()...)
	if err == nil {
		return finding.New(m.atomicOrKeyed(), expected, "accepted, and stored: %s", conditions(stored))
	}
	return refusedBecauseOf(err, "status.conditions", expected)
}

// statusWriteLeavesSpec writes everything through /status and asks whether the status alone took it.
func (m memcacheds) statusWriteLeavesSpec(ctx context.Context, obj *unstructured.Unstructured) error {
	before, changed, after, err := m.rewrite(ctx, obj, 4, "ThroughStatus", "status")
	if err != nil {
		return refusal(err, "other", "a write of a Kubernetes condition to `/status` accepted")
	}
	if got, want := conditions(after), conditions(changed); got != want {
		return finding.New("status-lost", "a condition that is still there after it was written to `/status`",
			"sent: %s, stored: %s; the fields of your status are: %s", want, got, m.Fields("status"))
	}
	for _, path := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
		if was, is := shown(before, path...), shown(after, path...); was != is {
			return finding.New("spec-through-status", "a write to `/status` that changes nothing but the status", "before, %s; after, %s", was, is)
		}
	}
	return nil
}

// specWriteLeavesStatus writes everything to the Memcached itself and asks whether the status stayed.
func (m memcacheds) specWriteLeavesStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	before, _, after, err := m.rewrite(ctx, obj, 3, "ThroughMain")
	if err != nil {
		return refusal(err, "change-refused", "a change of `spec` accepted")
	}
	if size, _, _ := unstructured.NestedInt64(after.Object, "spec", "size"); size != 3 {
		return finding.New("other", "a change of `spec.size` to 3 kept", "stored with %s; the fields of your spec are: %s", shown(after, "spec"), m.Fields("spec"))
	}
	if !reflect.DeepEqual(before.Object["status"], after.Object["status"]) {
		return finding.New("status-through-main", "a write to the Memcached that leaves its status alone", "before, %s; after, %s",
			shown(before, "status"), shown(after, "status"))
	}
	return nil
}

// rewrite changes everything in a Memcached: spec, status, labels and annotations. It returns the object as it was, as it was sent,
// and as it is.
func (m memcacheds) rewrite(ctx context.Context, obj *unstructured.Unstructured, size int64, reason string, subresource ...string,
) (before, changed, after *unstructured.Unstructured, err error) {
	objects := m.In(m.namespace)
	if before, err = objects.Get(ctx, obj.GetName(), metav1.GetOptions{}); err != nil {
		return nil, nil, nil, err
	}
	changed = before.DeepCopy()
	changed.SetLabels(map[string]string{"lab": reason})
	changed.SetAnnotations(map[string]string{"lab": reason})
	changed.Object["spec"] = spec{sizeField.name: size, portField.name: int64(11212)}
	changed.Object["status"] = map[string]any{"conditions": []any{condition("Available", reason)}}
	if _, err = objects.Update(ctx, changed, metav1.UpdateOptions{}, subresource...); err != nil {
		return nil, nil, nil, err
	}
	after, err = objects.Get(ctx, obj.GetName(), metav1.GetOptions{})
	return before, changed, after, err
}
