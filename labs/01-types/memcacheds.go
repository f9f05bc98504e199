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

// spec is that of a Memcached.
type spec = map[string]any

// open gives the check a namespace in which the learner's types are served. It fails the check when
// they are not.
func open(ctx context.Context) memcacheds {
	ginkgo.GinkgoHelper()
	resource, err := env.InstallDerivedCRD(ctx)
	Expect(err).To(Succeed())
	return memcacheds{Resource: resource, namespace: env.Namespace(ctx)}
}

// with is a new Memcached; a nil spec is none.
func (m memcacheds) with(s spec) *unstructured.Unstructured {
	obj := m.Object(m.namespace, env.RandomName())
	if s != nil {
		obj.Object["spec"] = s
	}
	return obj
}

func valid() spec { return spec{sizeField.name: int64(2), portField.name: int64(11211)} }

// accepts wants the API server to take a Memcached. cause is that of one that it refuses.
func (m memcacheds) accepts(ctx context.Context, obj *unstructured.Unstructured, validation, cause, expected string) (*unstructured.Unstructured, error) {
	stored, err := m.Create(ctx, obj, validation)
	return stored, refusal(err, cause, expected)
}

// refusal is the finding about something that should have been accepted. An error that is no answer of the API server about it
// stays what it is.
func refusal(err error, cause, expected string) error {
	if r, ok := crd.Refused(err); ok {
		return finding.New(cause, expected, "refused: %s", r.Text)
	}
	return err
}

// refuses wants the API server to refuse a Memcached because of the field at path. cause is that of one that it takes.
func (m memcacheds) refuses(ctx context.Context, obj *unstructured.Unstructured, validation, path, cause string) error {
	expected := fmt.Sprintf("a Memcached with %s refused because of `%s`", shown(obj, "spec"), path)
	stored, err := m.Create(ctx, obj, validation)
	if err == nil {
		if cause == optional && stored.Object["spec"] != nil {
			cause = defaulted
		}
		return finding.New(cause, expected, "accepted, and stored with %s", shown(stored, "spec"))
	}
	return refusedBecauseOf(err, path, expected)
}

func refusedBecauseOf(err error, path, expected string) error {
	r, ok := crd.Refused(err)
	switch {
	case !ok:
		return err
	case !r.About(path):
		return finding.New("other", expected, "refused for another reason: %s", r.Text)
	}
	return nil
}

// keeps asks whether a value of one field is accepted and is still there when the object is read back.
func (m memcacheds) keeps(ctx context.Context, f field, value int64) error {
	expected := fmt.Sprintf("`%s: %d` accepted and kept", f.path(), value)
	stored, err := m.Create(ctx, m.with(spec{f.name: value}), metav1.FieldValidationIgnore)
	if r, refused := crd.Refused(err); refused && !r.About(f.path()) {
		return finding.New("another-field", expected, "refused because of another field: %s", r.Text)
	}
	if err != nil {
		return refusal(err, f.refused, expected)
	}
	if got, _, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", f.name); got != value {
		return finding.New(f.lost, expected, "accepted, and stored with %s; the fields of your spec are: %s", shown(stored, "spec"), m.Fields("spec"))
	}
	if p := m.Property("spec", f.name); p != nil && (p.Type != "integer" || p.Format != "int32") {
		return finding.New("not-int32", "`"+f.path()+"`: an int32", "type %q with the format %q in the schema", p.Type, p.Format)
	}
	return nil
}

// refusesValues asks whether values of one field are refused, because of that field.
func (m memcacheds) refusesValues(ctx context.Context, f field, cause string, values ...any) error {
	for _, value := range values {
		if err := m.refuses(ctx, m.with(spec{f.name: value}), metav1.FieldValidationIgnore, f.path(), cause); err != nil {
			return err
		}
	}
	return nil
}

// refusesUnknown asks whether a client that wants to hear of unknown fields hears of the one at this path.
func (m memcacheds) refusesUnknown(ctx context.Context, path ...string) error {
	obj := m.with(valid())
	if err := unstructured.SetNestedField(obj.Object, int64(3), path...); err != nil {
		return fmt.Errorf("add an unknown field: %w", err)
	}
	return m.refuses(ctx, obj, metav1.FieldValidationStrict, strings.Join(path, "."), "unknown-field-accepted")
}

// fillsIn asks whether a spec without values, or with null for them, is filled in with the defaults.
func (m memcacheds) fillsIn(ctx context.Context, sent spec) error {
	stored, err := m.accepts(ctx, m.with(sent), metav1.FieldValidationIgnore, "empty-spec-refused", "a Memcached with an empty `spec` accepted")
	if err != nil {
		return err
	}
	for _, f := range []field{sizeField, portField} {
		expected := fmt.Sprintf("`%s: %d` in a Memcached that was created with an empty spec", f.path(), f.value)
		got, found, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", f.name)
		if got == f.value {
			continue
		}
		cause := f.anotherDefault
		switch {
		case !found:
			cause = f.noDefault
		case got == nil:
			cause = "null-accepted"
		}
		return finding.New(cause, expected, "stored with %s; the fields of your spec are: %s", shown(stored, "spec"), m.Fields("spec"))
	}
	return nil
}

// stored is a Memcached with both fields set, to write a status to. It fails the check when the API
// server does not take one.
func (m memcacheds) stored(ctx context.Context) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	obj := m.with(valid())
	obj.SetLabels(map[string]string{"lab": "before"})
	obj.SetAnnotations(map[string]string{"lab": "before"})
	stored, err := m.accepts(ctx, obj, metav1.FieldValidationIgnore, "other", "a Memcached with size 2 and containerPort 11211 accepted")
	Expect(err).To(Succeed())
	return stored
}

// shown is a part of an object as JSON.
func shown(obj *unstructured.Unstructured, path ...string) string {
	name := strings.Join(path, ".")
	value, found, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	text, err := json.Marshal(value)
	if !found || err != nil {
		return "no " + name
	}
	return fmt.Sprintf("%s: %s", name, text)
}
