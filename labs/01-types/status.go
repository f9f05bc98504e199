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

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/internal/finding"
)

// condition is a whole Kubernetes condition. Its reason tells one writer's from another's.
func condition(conditionType, reason string) map[string]any {
	return map[string]any{
		"type": conditionType, "status": "True", "reason": reason, "message": "written by a check",
		"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": int64(1),
	}
}

// conditions are the type and reason of every condition in obj, sorted.
func conditions(obj *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var all []string
	for _, entry := range list {
		entry, _ := entry.(map[string]any)
		all = append(all, fmt.Sprintf("%v/%v", entry["type"], entry["reason"]))
	}
	slices.Sort(all)
	return all
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
	return finding.New("no-conditions", "a list `status.conditions`", "the fields of your status are: %s", m.fields("status"))
}

// mergesConditions asks whether two writers who each apply a condition of their own leave each other's
// alone.
func (m memcacheds) mergesConditions(ctx context.Context, obj *unstructured.Unstructured, types ...string) error {
	const expected = "two writers, each with a condition of its own in `status.conditions`, who keep each other's"
	var want []string
	for i, conditionType := range types {
		writer := fmt.Sprintf("Writer%d", i+1)
		want = append(want, conditionType+"/"+writer)
		err := m.apply(ctx, obj, writer, condition(conditionType, writer))
		if apierrors.IsConflict(err) {
			return finding.New(m.atomicOrKeyed(), expected, "the second writer gets a conflict: %s", message(err))
		}
		if err != nil && i > 0 {
			return finding.New("one-condition-only", expected, "the second one is refused: %s", message(err))
		}
		if err != nil {
			return finding.New("wrong-shape", "`status.conditions` that take a Kubernetes condition", "refused: %s", message(err))
		}
	}
	stored, err := m.In(m.namespace).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Memcached: %w", err)
	}
	slices.Sort(want)
	if got := conditions(stored); !slices.Equal(got, want) {
		return finding.New(m.atomicOrKeyed(), expected, "of %s, only this is left: %s", strings.Join(want, " and "), orNothing(got))
	}
	return nil
}

// apply sends one condition by server-side apply.
func (m memcacheds) apply(ctx context.Context, obj *unstructured.Unstructured, writer string, c map[string]any) error {
	applied := m.Object(m.namespace, obj.GetName())
	if len(m.status()) == 0 {
		applied.Object["spec"] = obj.Object["spec"] // a required spec is required here, too
	}
	applied.Object["status"] = map[string]any{"conditions": []any{c}}
	options := metav1.ApplyOptions{FieldManager: strings.ToLower(writer)}
	_, err := m.In(m.namespace).Apply(ctx, obj.GetName(), applied, options, m.status()...)
	return err
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
		return finding.New(m.atomicOrKeyed(), expected, "accepted, and stored: %s", orNothing(conditions(stored)))
	}
	r, ok := crd.Refused(err)
	if !ok {
		return fmt.Errorf("write two conditions: %w", err)
	}
	if !r.About("status.conditions") {
		return finding.New("other", expected, "refused for another reason: %s", r.Text)
	}
	return nil
}

// statusDoorWritesStatusOnly writes everything through /status and asks whether only the status took it.
func (m memcacheds) statusDoorWritesStatusOnly(ctx context.Context, obj *unstructured.Unstructured) error {
	before, err := m.In(m.namespace).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Memcached: %w", err)
	}
	changed := m.changed(before, 4, "ThroughStatus")
	if _, err := m.In(m.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return refusal(err, "other", "a write of a Kubernetes condition to `/status` accepted")
	}
	after, err := m.In(m.namespace).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Memcached: %w", err)
	}
	if got, want := conditions(after), conditions(changed); !slices.Equal(got, want) {
		return finding.New("status-lost", "a condition that is still there after it was written to `/status`",
			"sent: %s, stored: %s; the fields of your status are: %s", orNothing(want), orNothing(got), m.fields("status"))
	}
	for _, path := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
		was, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(after.Object, path...)
		if name := strings.Join(path, "."); !reflect.DeepEqual(was, is) {
			return finding.New("spec-through-status", "a write to `/status` that changes nothing but the status",
				"before, %s; after, %s", show(name, was), show(name, is))
		}
	}
	return nil
}

// mainDoorLeavesStatus writes everything to the Memcached itself and asks whether the status stayed.
func (m memcacheds) mainDoorLeavesStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	before, err := m.In(m.namespace).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Memcached: %w", err)
	}
	if _, err := m.In(m.namespace).Update(ctx, m.changed(before, 3, "ThroughMain"), metav1.UpdateOptions{}); err != nil {
		return refusal(err, "change-refused", "a change of `spec` accepted")
	}
	after, err := m.In(m.namespace).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Memcached: %w", err)
	}
	if size, _, _ := unstructured.NestedInt64(after.Object, "spec", "size"); size != 3 {
		return finding.New("other", "a change of `spec.size` to 3 kept", "stored with %s; the fields of your spec are: %s", spec(after), m.fields("spec"))
	}
	if was, is := before.Object["status"], after.Object["status"]; !reflect.DeepEqual(was, is) {
		return finding.New("status-through-main", "a write to the Memcached that leaves its status alone", "before, %s; after, %s", show("status", was), show("status", is))
	}
	return nil
}

// changed is obj with everything in it changed: spec, status, labels and annotations.
func (m memcacheds) changed(obj *unstructured.Unstructured, size int64, reason string) *unstructured.Unstructured {
	changed := obj.DeepCopy()
	changed.SetLabels(map[string]string{"lab": reason})
	changed.SetAnnotations(map[string]string{"lab": reason})
	changed.Object["spec"] = fields{sizeField.name: size, portField.name: 11212}.spec()
	changed.Object["status"] = map[string]any{"conditions": []any{condition("Available", reason)}}
	return changed
}

// message is the text of an error without what the client wrapped around it.
func message(err error) string {
	if r, ok := crd.Refused(err); ok {
		return r.Text
	}
	return err.Error()
}

func orNothing(all []string) string {
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}
