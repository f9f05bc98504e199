package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
)

// gvk is the kind that the learner defines.
var gvk = schema.GroupVersionKind{Group: Group, Version: "v1alpha1", Kind: "Memcached"}

// Memcached is one custom resource of a check, and the Deployment of the same name.
type Memcached struct {
	Namespace, Name string
	Size, Port      int32
}

// Invent draws a Memcached's name, size (2 to 4) and port from the run's seed.
func Invent(r *rand.Rand, namespace string) Memcached {
	return Memcached{Namespace: namespace, Name: Name(r), Size: 2 + r.Int32N(3), Port: Port(r)}
}

// Name draws a name of ten letters.
func Name(r *rand.Rand) string {
	letters := make([]byte, 10)
	for i := range letters {
		letters[i] = 'a' + byte(r.IntN(26))
	}
	return string(letters)
}

// Port draws a port that is not memcached's own, so that nobody listens on it by accident.
func Port(r *rand.Rand) int32 { return 20000 + r.Int32N(10000) }

// Key is the name under which both objects are found.
func (m Memcached) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// String is how reports name the Memcached.
func (m Memcached) String() string { return m.Namespace + "/" + m.Name }

// Create sends the Memcached as a user would.
func (m Memcached) Create(ctx context.Context) error {
	if err := LearnersCRD(); err != nil {
		return err
	}
	obj := m.object()
	obj.Object["spec"] = map[string]any{"size": int64(m.Size), "containerPort": int64(m.Port)}
	err := suite.admin.Create(ctx, obj)
	_, unanswered := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return nil
	case unanswered || serversFault(err):
		return fmt.Errorf("create Memcached %s: %w", m, err)
	}
	return finding.New("refused", fmt.Sprintf("the API server takes a Memcached with size %d and containerPort %d", m.Size, m.Port), "%v", err)
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
	err := suite.admin.Get(ctx, m.Key(), obj)
	return obj, err
}

// SetSpec changes one field of the spec, as `kubectl patch` would.
func (m Memcached) SetSpec(ctx context.Context, field string, value int32) error {
	return m.merge(ctx, map[string]any{"spec": map[string]any{field: value}})
}

// Annotate changes an annotation that means nothing to any operator, which makes a new pass.
func (m Memcached) Annotate(ctx context.Context, value string) error {
	return m.merge(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.org/note": value}}})
}

func (m Memcached) merge(ctx context.Context, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	if err := suite.admin.Patch(ctx, m.object(), client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patch Memcached %s: %w", m, err)
	}
	return nil
}

// Delete deletes the Memcached with the given propagation, and waits until it is gone.
func (m Memcached) Delete(ctx context.Context, propagation metav1.DeletionPropagation) error {
	if err := m.BeginDelete(ctx, propagation); err != nil {
		return err
	}
	if propagation == metav1.DeletePropagationBackground {
		return UntilAnswered(ctx, ReactBudget, m.Namespace, m.list(), func() error { return m.gone(ctx) })
	}
	return m.AwaitCollected(ctx)
}

// BeginDelete asks for the Memcached's deletion with the given propagation.
func (m Memcached) BeginDelete(ctx context.Context, propagation metav1.DeletionPropagation) error {
	if err := suite.admin.Delete(ctx, m.object(), client.PropagationPolicy(propagation)); err != nil {
		return fmt.Errorf("delete Memcached %s: %w", m, err)
	}
	return nil
}

// AwaitCollected waits until a Memcached is gone whose deletion is the garbage collector's work first, whoever wrote
// the operator.
func (m Memcached) AwaitCollected(ctx context.Context) error {
	return UntilKubernetes(ctx, CollectBudget, m.list(), func() error { return m.gone(ctx) }, client.InNamespace(m.Namespace))
}

func (m Memcached) gone(ctx context.Context) error {
	obj, err := m.Get(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return finding.New("memcached-stuck", "the deleted Memcached goes", "it is still there, held by finalizers %q", obj.GetFinalizers())
}

// holdFinalizer is what [Memcached.Hold] holds a Memcached with.
const holdFinalizer = "example.org/hold"

// Hold keeps the Memcached there when it is deleted, as any other controller's finalizer would, until
// [Memcached.Release] or the end of the check.
func (m Memcached) Hold(ctx context.Context) error {
	ginkgo.DeferCleanup(m.Release)
	return m.finalizers(ctx, func(names []string) []string { return append(names, holdFinalizer) })
}

// Release ends what [Memcached.Hold] began.
func (m Memcached) Release(ctx context.Context) error {
	err := m.finalizers(ctx, func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return name == holdFinalizer })
	})
	return client.IgnoreNotFound(err)
}

// finalizers changes the Memcached's finalizers; those of the operator have to stay.
func (m Memcached) finalizers(ctx context.Context, change func([]string) []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj, err := m.Get(ctx)
		if err != nil {
			return err
		}
		obj.SetFinalizers(change(obj.GetFinalizers()))
		return suite.admin.Update(ctx, obj)
	})
}

func (m Memcached) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// Await waits until the manager has made the Memcached as cond wants it: see [UntilAnswered].
func (m Memcached) Await(ctx context.Context, budget time.Duration, cond func(*unstructured.Unstructured) error) error {
	return m.whyStatus(UntilAnswered(ctx, budget, m.Namespace, m.list(), m.unlessRefused(memcacheds, func() error {
		obj, err := m.Get(ctx)
		if err != nil {
			return fmt.Errorf("get Memcached %s: %w", m, err)
		}
		return cond(obj)
	})))
}

// Condition reads one of obj's status conditions; nil when it is not there.
func Condition(obj *unstructured.Unstructured, conditionType string) (*metav1.Condition, error) {
	items, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("read status.conditions: %w", err)
	}
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok || fields["type"] != conditionType {
			continue
		}
		c := &metav1.Condition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, c); err != nil {
			return nil, fmt.Errorf("read condition %s: %w", conditionType, err)
		}
		return c, nil
	}
	return nil, nil
}

// CauseNoDeployment is the cause when nothing is known about why there is no Deployment.
const CauseNoDeployment = "no-deployment"

// Deployment reads the Deployment of the Memcached's name. When there is none, the error is a finding.
func (m Memcached) Deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	err := suite.admin.Get(ctx, m.Key(), d)
	if apierrors.IsNotFound(err) {
		return nil, finding.New(CauseNoDeployment, fmt.Sprintf("a Deployment %s for the Memcached of that name", m), "none")
	}
	if err != nil {
		return nil, fmt.Errorf("get Deployment %s: %w", m, err)
	}
	return d, nil
}

// AwaitDeployment waits until the Deployment of the Memcached's name exists and is as cond wants it, as
// far as that is the manager's work: see [UntilAnswered]. A nil cond only asks for its existence.
func (m Memcached) AwaitDeployment(ctx context.Context, budget time.Duration, cond func(*appsv1.Deployment) error) (*appsv1.Deployment, error) {
	return m.awaitDeployment(ctx, wait{budget: budget, answers: m.Namespace}, cond)
}

func (m Memcached) awaitDeployment(ctx context.Context, w wait, cond func(*appsv1.Deployment) error) (*appsv1.Deployment, error) {
	var found *appsv1.Deployment
	w.list, w.opts = &appsv1.DeploymentList{}, []client.ListOption{client.InNamespace(m.Namespace)}
	err := w.until(ctx, m.unlessRefused(deployments, func() error {
		d, err := m.Deployment(ctx)
		if err != nil {
			return err
		}
		found = d
		if cond == nil {
			return nil
		}
		return cond(d)
	}))
	return found, m.why(ctx, err)
}

// whyNoDeployment looks for the reason in what can be seen from outside, the most telling first. When
// it finds none it returns the finding as it is.
func (m Memcached) whyNoDeployment(ctx context.Context, f *finding.Finding) error {
	refused, err := Refused(ctx, 0)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		return finding.New("forbidden", f.Expected, "none; the API server refused the manager: %s", Refusal(refused[0]))
	}
	requests := Requests(0)
	for _, r := range requests {
		if r.Resource == "deployments" && r.Verb == "create" && r.Namespace == m.Namespace && r.Refused() {
			return finding.New("rejected", f.Expected, "none; the API server did not take the one that was sent: %s", r)
		}
	}
	if panicked := m.whyPanicked(f); panicked != f {
		return panicked
	}
	if namespaces := looksInto(requests); len(namespaces) > 0 && !slices.Contains(namespaces, m.Namespace) {
		return finding.New("looks-elsewhere", f.Expected, "none; your manager looks for Memcacheds in the namespace %s only", strings.Join(namespaces, ", "))
	}
	if other := m.elsewhere(ctx); other != nil {
		return other
	}
	return f
}

// elsewhere finds a Deployment that was probably meant for this Memcached: one that no other Memcached
// has the name of.
func (m Memcached) elsewhere(ctx context.Context) error {
	var list appsv1.DeploymentList
	all := m.list()
	if err := errors.Join(suite.admin.List(ctx, &list), suite.admin.List(ctx, all)); err != nil {
		return nil //nolint:nilerr // only one more clue
	}
	meant := map[types.NamespacedName]bool{}
	for _, other := range all.Items {
		meant[client.ObjectKeyFromObject(&other)] = true
	}
	expected := fmt.Sprintf("a Deployment %s", m)
	for _, d := range list.Items {
		switch {
		case meant[client.ObjectKeyFromObject(&d)]:
		case d.Namespace == m.Namespace && d.Name != m.Name:
			return finding.New("wrong-name", expected, "a Deployment %s/%s", d.Namespace, d.Name)
		case d.Namespace != m.Namespace && d.Name == m.Name:
			return finding.New("wrong-namespace", expected, "a Deployment %s/%s", d.Namespace, d.Name)
		}
	}
	return nil
}

// Container is the one container of the contract, or a finding.
func Container(d *appsv1.Deployment) (corev1.Container, error) {
	containers := d.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return corev1.Container{}, finding.New("containers", "exactly one container in the Pod template", "%d", len(containers))
	}
	return containers[0], nil
}

// HasReplicas is a condition for [Memcached.AwaitDeployment].
func HasReplicas(want int32, cause string) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		if have := Replicas(d); have != want {
			return finding.New(cause, fmt.Sprintf("spec.replicas %d, as the Memcached's spec.size", want), "spec.replicas %d", have).
				With(difference("spec.replicas", want, have))
		}
		return nil
	}
}

// difference is a field of a finding.
func difference(path string, want, have any) finding.Field {
	return finding.Field{Path: path, Want: fmt.Sprint(want), Have: fmt.Sprint(have)}
}

// differing are those of the fields whose sides differ.
func differing(fields ...finding.Field) []finding.Field {
	return slices.DeleteFunc(fields, func(f finding.Field) bool { return f.Want == f.Have })
}

// Replicas is what the Deployment asks for.
func Replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// Available is a condition for [Memcached.AwaitDeployment]: as many Pods as wanted are available.
func Available(want int32) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.AvailableReplicas != want || s.Replicas != want || s.UpdatedReplicas != want {
			return finding.New("too-few", fmt.Sprintf("%d available Pods", want), "%d available of %d", s.AvailableReplicas, s.Replicas).
				With(differing(
					difference("status.replicas", want, s.Replicas),
					difference("status.updatedReplicas", want, s.UpdatedReplicas),
					difference("status.availableReplicas", want, s.AvailableReplicas),
				)...)
		}
		return nil
	}
}

// PodlessNamespace is a [Namespace] in which a quota admits no Pods. Checks that judge objects alone
// work there, so that they do not wait for containers, and leave the machine to those that do.
func PodlessNamespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	ns := newNamespace(ctx, func(context.Context, string) bool { return true }) // Kubernetes goes on trying to make the Pods
	Require(Quota(ctx, ns, 0))
	return ns
}

// quotaName is the name of the quota that [Quota] sets.
const quotaName = "pods"

// Quota limits the number of Pods in a namespace, and waits until the limit counts.
func Quota(ctx context.Context, namespace string, pods int64) error {
	hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: quotaName},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
	if err := suite.admin.Create(ctx, quota); err != nil {
		return fmt.Errorf("create quota: %w", err)
	}
	return Until(ctx, ReactBudget, &corev1.ResourceQuotaList{}, func() error {
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return fmt.Errorf("get quota: %w", err)
		}
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("the quota of namespace %s does not count yet", namespace)
		}
		return nil
	}, client.InNamespace(namespace))
}

// CreateForeign makes a Deployment of the Memcached's name that somebody else controls.
func (m Memcached) CreateForeign(ctx context.Context) (*appsv1.Deployment, error) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "owner-of-" + m.Name}}
	if err := suite.admin.Create(ctx, owner); err != nil {
		return nil, fmt.Errorf("create the foreign owner: %w", err)
	}
	labels := map[string]string{"example.org/app": "foreign"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: suite.config.MemcachedImage}}},
			},
		},
	}
	if err := suite.admin.Create(ctx, d); err != nil {
		return nil, fmt.Errorf("create the foreign Deployment: %w", err)
	}
	return d, nil
}

// fieldName selects one object by its name in a watch.
func fieldName(name string) client.MatchingFieldsSelector {
	return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
}
