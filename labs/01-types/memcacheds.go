package types

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// memcacheds is the API that the learner's types define, in the namespace of one check.
type memcacheds struct {
	*crd.Resource
	namespace string
}

// open gives the check a namespace in which the learner's types are served. It fails the check when
// they are not.
func open(ctx context.Context) memcacheds {
	ginkgo.GinkgoHelper()
	resource, err := env.InstallDerivedCRD(ctx)
	Expect(err).To(Succeed())
	return memcacheds{Resource: resource, namespace: env.Namespace(ctx)}
}

// with is a new Memcached; a nil spec is none.
func (m memcacheds) with(spec map[string]any) *unstructured.Unstructured {
	obj := m.Object(m.namespace, env.RandomName())
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

func (f fields) spec() map[string]any {
	spec := map[string]any{}
	for name, value := range f {
		spec[name] = value
	}
	return spec
}

// keeps asks whether a value of one field is accepted and is still there when the object is read back.
func (m memcacheds) keeps(ctx context.Context, f field, value int64) error {
	expected := fmt.Sprintf("%s: %d accepted and kept", f, value)
	stored, err := m.Create(ctx, m.with(map[string]any{f.name: value}), metav1.FieldValidationIgnore)
	if r, refused := crd.Refused(err); refused && !r.About(f.path()) {
		return finding.New("another-field", expected, "refused because of another field: %s", r.Text)
	}
	if err != nil {
		return refusal(err, f.refused, expected)
	}
	if got, found, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", f.name); !found || got != value {
		return finding.New(f.lost, expected, "accepted, and stored with %s; the fields of your spec are: %s", spec(stored), m.fields("spec"))
	}
	if p := m.Property("spec", f.name); p != nil && (p.Type != "integer" || p.Format != "int32") {
		return finding.New("not-int32", fmt.Sprintf("%s: an int32", f), "type %q with the format %q in the schema", p.Type, p.Format)
	}
	return nil
}

// refuses asks whether values of one field are refused, because of that field. cause is that of a value
// that is accepted.
func (m memcacheds) refuses(ctx context.Context, f field, cause string, values ...any) error {
	for _, value := range values {
		if n, ok := value.(int); ok {
			value = int64(n)
		}
		shown, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("show value: %w", err)
		}
		expected := fmt.Sprintf("%s: %s refused", f, shown)
		stored, err := m.Create(ctx, m.with(map[string]any{f.name: value}), metav1.FieldValidationIgnore)
		if err == nil {
			return finding.New(cause, expected, "accepted, and stored with %s", spec(stored))
		}
		r, ok := crd.Refused(err)
		if !ok {
			return fmt.Errorf("create a Memcached with %s: %s: %w", f, shown, err)
		}
		if !r.About(f.path()) {
			return finding.New("other", expected+" because of that field", "refused for another reason: %s", r.Text)
		}
	}
	return nil
}

// strictlyAccepts asks whether a client that wants to hear of unknown fields hears of none.
func (m memcacheds) strictlyAccepts(ctx context.Context, f fields) error {
	_, err := m.Create(ctx, m.with(f.spec()), metav1.FieldValidationStrict)
	if err == nil {
		return nil
	}
	r, ok := crd.Refused(err)
	if !ok {
		return fmt.Errorf("create a Memcached: %w", err)
	}
	return finding.New("known-field-refused", "`spec.size` and `spec.containerPort` accepted under strict validation",
		"%s; the fields of your spec are: %s", r.Text, m.fields("spec"))
}

// strictlyRefuses asks whether a client that wants to hear of unknown fields hears of the one at this path.
func (m memcacheds) strictlyRefuses(ctx context.Context, path ...string) error {
	expected := fmt.Sprintf("the field `%s`, which nobody defined, refused under strict validation", strings.Join(path, "."))
	obj := m.with(fields{sizeField.name: 3, portField.name: 11211}.spec())
	if err := unstructured.SetNestedField(obj.Object, int64(3), path...); err != nil {
		return fmt.Errorf("add an unknown field: %w", err)
	}
	stored, err := m.Create(ctx, obj, metav1.FieldValidationStrict)
	if err == nil {
		return finding.New("unknown-field-accepted", expected, "accepted, and stored with %s", spec(stored))
	}
	r, ok := crd.Refused(err)
	if !ok {
		return fmt.Errorf("create a Memcached: %w", err)
	}
	if !strings.Contains(r.Text, path[len(path)-1]) {
		return finding.New("other", expected, "refused for another reason: %s", r.Text)
	}
	return nil
}

// refusesNoSpec asks whether a Memcached without spec is refused for that reason.
func (m memcacheds) refusesNoSpec(ctx context.Context) error {
	const expected = "a Memcached without `spec` refused"
	stored, err := m.Create(ctx, m.with(nil), metav1.FieldValidationIgnore)
	if err == nil {
		cause := "spec-optional"
		if _, filled := stored.Object["spec"]; filled {
			cause = "spec-defaulted"
		}
		return finding.New(cause, expected, "accepted, and stored with %s", spec(stored))
	}
	r, ok := crd.Refused(err)
	if !ok {
		return fmt.Errorf("create a Memcached without spec: %w", err)
	}
	if !r.About("spec") {
		return finding.New("other", expected, "refused for another reason: %s", r.Text)
	}
	return nil
}

// acceptsSpec asks whether a Memcached with a small valid spec is accepted and kept: only then was the
// missing spec what a refusal was about.
func (m memcacheds) acceptsSpec(ctx context.Context, f fields) error {
	const expected = "a Memcached with a valid `spec` accepted and kept"
	stored, err := m.Create(ctx, m.with(f.spec()), metav1.FieldValidationIgnore)
	if err != nil {
		return refusal(err, "spec-refused", expected)
	}
	if got, _, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", sizeField.name); got != f[sizeField.name] {
		return finding.New("spec-refused", expected, "sent with size %d, stored with %s; the fields of your spec are: %s",
			f[sizeField.name], spec(stored), m.fields("spec"))
	}
	return nil
}

// refusesNull asks whether a Memcached whose spec is null is refused.
func (m memcacheds) refusesNull(ctx context.Context) error {
	obj := m.with(nil)
	obj.Object["spec"] = nil
	stored, err := m.Create(ctx, obj, metav1.FieldValidationIgnore)
	if err == nil {
		return finding.New("spec-nullable", "a Memcached with `spec: null` refused", "accepted, and stored with %s", spec(stored))
	}
	if _, ok := crd.Refused(err); !ok {
		return fmt.Errorf("create a Memcached with a spec of null: %w", err)
	}
	return nil
}

// defaults asks whether a spec without values, or with null for them, is filled in with these.
func (m memcacheds) defaults(ctx context.Context, want fields) error {
	if err := m.fillsIn(ctx, map[string]any{}, want); err != nil {
		return err
	}
	return m.fillsIn(ctx, map[string]any{sizeField.name: nil, portField.name: nil}, want)
}

func (m memcacheds) fillsIn(ctx context.Context, sent map[string]any, want fields) error {
	stored, err := m.Create(ctx, m.with(sent), metav1.FieldValidationIgnore)
	if err != nil {
		return refusal(err, "empty-spec-refused", "a Memcached with an empty `spec` accepted")
	}
	for _, f := range []struct{ field, missing, wrong string }{
		{sizeField.name, "no-size-default", "wrong-size-default"},
		{portField.name, "no-port-default", "wrong-port-default"},
	} {
		expected := fmt.Sprintf("`spec.%s: %d` in a Memcached that was created with an empty spec", f.field, want[f.field])
		got, found, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", f.field)
		if !found {
			return finding.New(f.missing, expected, "stored with %s; the fields of your spec are: %s", spec(stored), m.fields("spec"))
		}
		if got == nil {
			return finding.New("null-accepted", "null for `spec."+f.field+"` replaced by the default", "stored with %s", spec(stored))
		}
		if got != want[f.field] {
			return finding.New(f.wrong, expected, "stored with %s", spec(stored))
		}
	}
	return nil
}

// some is a Memcached with both fields set, to write a status to. It fails the check when the API
// server does not take one.
func (m memcacheds) some(ctx context.Context) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	obj := m.with(fields{sizeField.name: 2, portField.name: 11211}.spec())
	obj.SetLabels(map[string]string{"lab": "before"})
	obj.SetAnnotations(map[string]string{"lab": "before"})
	stored, err := m.Create(ctx, obj, metav1.FieldValidationIgnore)
	if err != nil {
		Expect(refusal(err, "other", "a Memcached with size 2 and containerPort 11211 accepted")).To(Succeed())
	}
	return stored
}

// fields lists what the learner's schema knows below path.
func (m memcacheds) fields(path ...string) string {
	known := m.Fields(path...)
	if len(known) == 0 {
		return "none"
	}
	return strings.Join(known, ", ")
}

// refusal is the finding about an object that should have been accepted. An error that is no answer of
// the API server about the object stays what it is.
func refusal(err error, cause, expected string) error {
	r, ok := crd.Refused(err)
	if !ok {
		return fmt.Errorf("expected %s: %w", expected, err)
	}
	return finding.New(cause, expected, "refused: %s", r.Text)
}

// spec shows the spec of an object that was read.
func spec(obj *unstructured.Unstructured) string {
	value, found := obj.Object["spec"]
	if !found {
		return "no spec"
	}
	return show("spec", value)
}

func show(name string, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%s: %v", name, value)
	}
	return fmt.Sprintf("%s: %s", name, text)
}
