package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// gvk is the kind that the learner defines.
var gvk = schema.GroupVersionKind{Group: suite.Group, Version: "v1alpha1", Kind: "Memcached"}

// Memcached is one custom resource of a check, and the Deployment of the same name. A Size or Port of 0 is left out of the
// spec, so that the API server sets the default.
type Memcached struct {
	Namespace, Name string
	Size, Port      int32
}

// NewMemcached makes a Memcached with a random name, size and port, which depend on the run's seed and the id of the check. A size
// may be given; otherwise it is from 2 to 4.
func NewMemcached(namespace string, size ...int32) Memcached {
	// The port is not memcached's default, so that nothing listens on it by accident, and too large for an int16.
	name, r := RandomName(), running().rand
	size = append(size, 2+r.Int32N(3)) // also if one is given, so that the other values stay the same
	return Memcached{Namespace: namespace, Name: name, Size: size[0], Port: 40000 + r.Int32N(20000)}
}

// RandomName makes a name of ten random letters.
func RandomName() string {
	r := running().rand
	letters := make([]byte, 10)
	for i := range letters {
		letters[i] = 'a' + byte(r.IntN(26))
	}
	return string(letters)
}

// Key is the namespace and name of both objects.
func (m Memcached) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// String is how reports name the Memcached.
func (m Memcached) String() string { return m.Namespace + "/" + m.Name }

// Create sends the Memcached as a user would.
func (m Memcached) Create(ctx context.Context) error { return m.CreateWith(ctx, map[string]any{}) }

// CreateWith is [Memcached.Create] with more fields in the spec. It adds size and port to spec.
func (m Memcached) CreateWith(ctx context.Context, spec map[string]any) error {
	if f := current.shared.CRD; f != nil {
		return f
	}
	running().memcached = m
	obj := m.object()
	obj.SetLabels(map[string]string{usersLabel: "one"})
	if m.Size != 0 {
		spec["size"] = int64(m.Size)
	}
	if m.Port != 0 {
		spec["containerPort"] = int64(m.Port)
	}
	obj.Object["spec"] = spec
	err := current.admin.Create(ctx, obj)
	if _, unanswered := errors.AsType[*url.Error](err); err == nil || unanswered || serversFault(err) {
		return err
	}
	return finding.New("refused", fmt.Sprintf("the API server takes a Memcached with the spec %v", spec), "%v", err)
}

func (m Memcached) object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(m.Namespace)
	obj.SetName(m.Name)
	return obj
}

// Get reads the Memcached.
func (m Memcached) Get(ctx context.Context) (*unstructured.Unstructured, error) {
	obj := m.object()
	return obj, current.admin.Get(ctx, m.Key(), obj)
}

// SetSpec changes one field of the spec, as `kubectl patch` would. The value is written as JSON; nil removes the field.
func (m Memcached) SetSpec(ctx context.Context, field string, value any) error {
	return m.merge(ctx, map[string]any{"spec": map[string]any{field: value}})
}

// usersLabel is a label of every Memcached that no operator knows.
const usersLabel = "example.org/tier"

// Relabel changes a label of the Memcached, as users may at any time.
func (m Memcached) Relabel(ctx context.Context) error {
	return m.merge(ctx, map[string]any{"metadata": map[string]any{"labels": map[string]any{usersLabel: "two"}}})
}

// noteAnnotation is an annotation that no operator knows.
const noteAnnotation = "example.org/note"

// Annotate changes an annotation that no operator knows. The change starts a pass in which there is nothing to do.
func (m Memcached) Annotate(ctx context.Context) error {
	return m.merge(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]any{noteAnnotation: uuid.NewUUID()}}})
}

func (m Memcached) merge(ctx context.Context, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	return current.admin.Patch(ctx, m.object(), client.RawPatch(types.MergePatchType, data))
}

// Delete asks for the Memcached's deletion with the given propagation.
func (m Memcached) Delete(ctx context.Context, propagation metav1.DeletionPropagation) error {
	return current.admin.Delete(ctx, m.object(), client.PropagationPolicy(propagation))
}

// holdFinalizer is the finalizer of [Memcached.Hold].
const holdFinalizer = "example.org/hold"

// Hold adds a finalizer, as another controller could. A Memcached that is deleted stays until [Memcached.Release] or the end of
// the check.
func (m Memcached) Hold(ctx context.Context) error {
	ginkgo.DeferCleanup(m.Release)
	return m.finalizers(ctx, controllerutil.AddFinalizer)
}

// Release removes the finalizer of [Memcached.Hold].
func (m Memcached) Release(ctx context.Context) error {
	return client.IgnoreNotFound(m.finalizers(ctx, controllerutil.RemoveFinalizer))
}

// finalizers adds or removes [holdFinalizer], and leaves the operator's finalizers as they are.
func (m Memcached) finalizers(ctx context.Context, change func(client.Object, string) bool) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj, err := m.Get(ctx)
		if err != nil {
			return err
		}
		change(obj, holdFinalizer)
		return current.admin.Update(ctx, obj)
	})
}

// IsSpecUntouched returns a finding if anybody but this suite has set a field of the spec, by the Memcached's managed fields.
func (m Memcached) IsSpecUntouched(ctx context.Context) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return err
	}
	users, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) && entry.Manager != users {
			return finding.New("spec-written", "the spec of a Memcached belongs to its users: see metadata.managedFields",
				"%s (%s) owns fields of the spec", entry.Manager, entry.Operation)
		}
	}
	return nil
}

// MemcachedOf reads the Memcached when it is polled: use it with Eventually and Consistently. A Memcached that does not exist has
// a name and no UID.
func MemcachedOf(m Memcached) func(context.Context) (*unstructured.Unstructured, error) {
	return Polled(func(ctx context.Context) (*unstructured.Unstructured, error) {
		obj, err := m.Get(ctx)
		if apierrors.IsNotFound(err) {
			return m.object(), nil
		}
		return obj, err
	})
}

// Events lists the events on the Memcached, of the old and the new recorder.
func (m Memcached) Events(ctx context.Context) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	err := current.admin.List(ctx, &list, client.InNamespace(m.Namespace))
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != gvk.Kind || e.Regarding.Name != m.Name
	}), err
}

// CauseNoEvent is the cause if an event is missing and nothing explains it.
const CauseNoEvent = "no-event"

// EventsOf lists the events on the Memcached when it is polled: use it with Eventually and Consistently.
func EventsOf(m Memcached) func(context.Context) ([]eventsv1.Event, error) {
	return Polled(m.Events)
}

// Condition reads one of obj's status conditions. It is nil if there is none, or if the field is no list of conditions.
func Condition(obj *unstructured.Unstructured, conditionType string) *metav1.Condition {
	var read struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &read)
	return meta.FindStatusCondition(read.Status.Conditions, conditionType)
}
