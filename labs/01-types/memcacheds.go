package types

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// memcacheds is the API that the learner's types define, in the namespace of one check.
type memcacheds struct {
	*crd.Resource
	namespace string
}

// open gives the check a namespace in which the learner's types are served. It fails the check when they are not.
func open(ctx context.Context) memcacheds {
	ginkgo.GinkgoHelper()
	resource, err := env.InstallDerivedCRD(ctx)
	Expect(err).To(Succeed())
	return memcacheds{Resource: resource, namespace: env.Namespace(ctx)}
}

// field is one of the two fields of the spec, its default, and the causes of what can be wrong with it.
type field struct {
	name                                     string
	value                                    int64
	lost, refused, noDefault, anotherDefault string
}

var (
	sizeField = field{"size", 1, "size-lost", "size-refused", "no-size-default", "wrong-size-default"}
	portField = field{"containerPort", 11211, "port-lost", "port-refused", "no-port-default", "wrong-port-default"}
)

// path is how the API server names the field.
func (f field) path() string { return "spec." + f.name }

func valid() map[string]any { return map[string]any{"size": int64(2), "containerPort": int64(11211)} }

// with is a new Memcached with a spec; nil is null.
func (m memcacheds) with(spec map[string]any) *unstructured.Unstructured {
	obj := m.Object(m.namespace, env.RandomName())
	if obj.Object["spec"] = spec; spec == nil {
		obj.Object["spec"] = nil
	}
	return obj
}

// accepts wants the API server to take a Memcached, and returns what it has stored. cause is that of one that it refuses.
func (m memcacheds) accepts(
	ctx context.Context, obj *unstructured.Unstructured, validation, cause, expected string,
) (*unstructured.Unstructured, error) {
	stored, err := m.Create(ctx, obj, validation)
	if r, refused := crd.Refused(err); refused {
		return nil, finding.New(cause, expected, "refused: %s", r.Text)
	}
	return stored, err
}

// refusesObject wants the API server to refuse a Memcached because of the field at path. cause is that of one that it takes.
func (m memcacheds) refusesObject(ctx context.Context, obj *unstructured.Unstructured, validation, path, cause string) error {
	expected := fmt.Sprintf("a Memcached with %s refused because of `%s`", shown(obj), path)
	stored, err := m.Create(ctx, obj, validation)
	r, refused := crd.Refused(err)
	switch {
	case refused && r.About(path):
		return nil
	case refused:
		return finding.New("other", expected, "refused for another reason: %s", r.Text)
	case err != nil:
		return err
	}
	return finding.New(cause, expected, "accepted, and stored with %s", shown(stored))
}

// refuses wants values of one field to be refused, because of that field.
func (m memcacheds) refuses(ctx context.Context, f field, cause string, values ...any) error {
	for _, value := range values {
		if err := m.refusesObject(ctx, m.with(map[string]any{f.name: value}), metav1.FieldValidationIgnore, f.path(), cause); err != nil {
			return err
		}
	}
	return nil
}

// refusesUnknown wants strict validation to refuse a field that is not in the schema.
func (m memcacheds) refusesUnknown(ctx context.Context, path ...string) error {
	obj := m.with(valid())
	if err := unstructured.SetNestedField(obj.Object, int64(3), path...); err != nil {
		return err
	}
	return m.refusesObject(ctx, obj, metav1.FieldValidationStrict, strings.Join(path, "."), "unknown-field-accepted")
}

// keeps wants values of one field to be accepted, and to be there when the object is read back.
func (m memcacheds) keeps(ctx context.Context, f field, values ...int64) error {
	for _, value := range values {
		expected := fmt.Sprintf("`%s: %d` accepted and kept", f.path(), value)
		stored, err := m.Create(ctx, m.with(map[string]any{f.name: value}), metav1.FieldValidationIgnore)
		r, refused := crd.Refused(err)
		switch {
		case refused && !r.About(f.path()):
			return finding.New("another-field", expected, "refused because of another field: %s", r.Text)
		case refused:
			return finding.New(f.refused, expected, "refused: %s", r.Text)
		case err != nil:
			return err
		}
		if got, _, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", f.name); got != value {
			return finding.New(f.lost, expected, "accepted, and stored with %s; the fields of your spec are: %s", shown(stored), m.Fields("spec"))
		}
	}
	if p := m.Property("spec", f.name); p != nil && (p.Type != "integer" || p.Format != "int32") {
		return finding.New("not-int32", "`"+f.path()+"`: an int32", "type %q with the format %q in the schema", p.Type, p.Format)
	}
	return nil
}

// fillsIn wants a spec without values, or with null for them, to be filled in with the defaults.
func (m memcacheds) fillsIn(ctx context.Context, sent map[string]any) error {
	stored, err := m.accepts(ctx, m.with(sent), metav1.FieldValidationIgnore,
		"empty-spec-refused", "a Memcached with an empty `spec` accepted")
	if err != nil {
		return err
	}
	for _, f := range []field{sizeField, portField} {
		got, found, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", f.name)
		cause := f.anotherDefault
		switch {
		case got == f.value:
			continue
		case !found:
			cause = f.noDefault
		case got == nil:
			cause = "null-accepted"
		}
		return finding.New(cause, fmt.Sprintf("`%s: %d` in a Memcached that was created with an empty spec", f.path(), f.value),
			"stored with %s; the fields of your spec are: %s", shown(stored), m.Fields("spec"))
	}
	return nil
}

// hasListMap wants conditions that the API server merges by their type. fields are those of the status.
func hasListMap(conditions *apiextensionsv1.JSONSchemaProps, fields string) error {
	const expected = "a list `status.conditions`, a list-map with the key `type`"
	switch {
	case conditions == nil:
		return finding.New("no-conditions", expected, "the fields of your status are: %s", fields)
	case ptr.Deref(conditions.XListType, "atomic") != "map":
		return finding.New("atomic-list", expected, "a list of the type %s", ptr.Deref(conditions.XListType, "atomic"))
	case !slices.Equal(conditions.XListMapKeys, []string{"type"}):
		return finding.New("wrong-key", expected, "a list-map with the keys %s", strings.Join(conditions.XListMapKeys, ", "))
	}
	return nil
}

// writeConditions wants the API server to take Kubernetes conditions of these types in the status of a Memcached, and returns that.
// A check about conditions is not also one about the subresource.
func (m memcacheds) writeConditions(ctx context.Context, types ...string) (*unstructured.Unstructured, error) {
	obj, err := m.accepts(ctx, m.with(valid()), metav1.FieldValidationIgnore,
		"other", "a Memcached with size 2 and containerPort 11211 accepted")
	if err != nil {
		return nil, err
	}
	var conditions []any
	for _, t := range types {
		conditions = append(conditions, map[string]any{
			"type": t, "status": "True", "reason": "Written", "message": "written by a check",
			"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": int64(1),
		})
	}
	obj.Object["status"] = map[string]any{"conditions": conditions}
	var subresource []string
	if m.HasStatus() {
		subresource = []string{"status"}
	}
	written, err := m.In(m.namespace).Update(ctx, obj, metav1.UpdateOptions{}, subresource...)
	if r, refused := crd.Refused(err); refused {
		return nil, finding.New("wrong-shape", "`status.conditions` that take Kubernetes conditions", "refused: %s", r.Text)
	}
	return written, err
}

// hasCondition wants the one condition of [memcacheds.writeConditions] in a Memcached.
func (m memcacheds) hasCondition(written *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(written.Object, "status", "conditions")
	if len(conditions) == 1 {
		return nil
	}
	return finding.New("status-lost", "a condition that is still there after it was written to `/status`",
		"%d conditions; the fields of your status are: %s", len(conditions), m.Fields("status"))
}

// shown is the spec of a Memcached as JSON.
func shown(obj *unstructured.Unstructured) string {
	spec, found := obj.Object["spec"]
	text, err := json.Marshal(spec)
	if !found || err != nil {
		return "no spec"
	}
	return "spec: " + string(text)
}
