package env

import (
	"cmp"
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/example/operator-lab/labs/internal/trace"
)

// checkNamespace begins the names of the namespaces that checks work in.
const checkNamespace = trace.NamespacePrefix

// namespacesPerCheck is how many namespaces one check may work in.
const namespacesPerCheck = 2

// namespacesOf are the names of a check's namespaces, should that check run in the given process. Every process knows
// all of these names before it starts its manager, because its proxy has to hide those of the other processes.
func namespacesOf(run string, process int, check string) (names []string) {
	for n := range namespacesPerCheck {
		names = append(names, fmt.Sprintf("%s%s-%.3s%d%d", checkNamespace, check, run, process, n))
	}
	return names
}

// hiddenFrom are the namespaces in which checks of other processes may work.
func hiddenFrom(process, processes int, run string, checks []string) (hidden []string) {
	for other := 1; other <= processes; other++ {
		for _, check := range checks {
			if other != process {
				hidden = append(hidden, namespacesOf(run, other, check)...)
			}
		}
	}
	return hidden
}

// namespaced says whether a resource is namespaced, by the API server's discovery: false for an unknown resource.
func namespaced(group, resource string) (bool, error) {
	mapper := current.admin.RESTMapper()
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return apiutil.IsGVKNamespaced(kind, mapper)
}

// awaitDiscovery waits until discovery has Memcacheds, a moment after they are Established. Before that, the proxy would not hide
// the Memcacheds of other checks.
func awaitDiscovery(ctx context.Context) {
	_ = until(ctx, "Memcacheds are served", func(context.Context) (bool, error) {
		_, err := current.admin.RESTMapper().RESTMapping(gvk.GroupKind())
		return true, err
	})
}

// ownNamespaces are the namespaces that the check has made.
func (c *check) ownNamespaces() []string {
	return namespacesOf(current.shared.Run, ginkgo.GinkgoParallelProcess(), c.id)[:c.namespaces.Load()]
}

// Limit restricts a namespace of the running check, and returns when the restriction is in effect. lift removes it.
type Limit func(ctx context.Context, namespace string) (lift func(context.Context) error)

// Namespace makes a namespace for the running check, with limits. A check that judges objects alone has no Pods ([Quota] of 0), so
// that it does not wait for containers. [LeavePodsPending] has Pods that never start, so that no change of theirs starts a pass.
//
// When the check ends, its Memcacheds and Deployments are deleted: the manager then works for the next check alone, and the node has
// room for its Pods. The rest is deleted only if the cluster stays: to empty a namespace takes about seventy requests, which would
// slow the next checks. What cannot be deleted stays until the cluster is deleted.
func Namespace(ctx context.Context, limits ...Limit) string {
	ginkgo.GinkgoHelper()
	c := running()
	if c.namespaces.Load() == namespacesPerCheck {
		require(fmt.Errorf("the check %s wants more than %d namespaces: raise namespacesPerCheck in labs/harness", c.id, namespacesPerCheck))
	}
	name := namespacesOf(current.shared.Run, ginkgo.GinkgoParallelProcess(), c.id)[c.namespaces.Add(1)-1]
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require(current.admin.Create(ctx, ns))
	ginkgo.DeferCleanup(func(ctx context.Context) {
		current.trace.End(name)
		// Not a NodeTimeout, which would fail the check: a slow machine is no fault of the learner's.
		ctx, cancel := context.WithTimeout(ctx, StopTimeout)
		defer cancel()
		for _, kind := range []client.Object{Memcached{}.object(), &appsv1.Deployment{}} {
			_ = current.admin.DeleteAllOf(ctx, kind, client.InNamespace(name), client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if !current.config.Disposable {
			_ = current.admin.Delete(ctx, ns)
		}
	})
	for _, limit := range limits {
		limit(ctx, name)
	}
	return name
}

// Quota is a [Limit] of the number of Pods.
func Quota(pods int64) Limit {
	return func(ctx context.Context, namespace string) (lift func(context.Context) error) {
		ginkgo.GinkgoHelper()
		return limit(ctx, namespace, corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI), "count/leases.coordination.k8s.io": resource.Quantity{},
		}, quotaName, &coordinationv1.Lease{})
	}
}

// quotaName is the name of the quota of [Quota].
const quotaName = "pods"

// RefuseDeployments is a [Limit]: a quota has the API server refuse every new Deployment in a namespace.
func RefuseDeployments(ctx context.Context, namespace string) (lift func(context.Context) error) {
	ginkgo.GinkgoHelper()
	return limit(ctx, namespace, corev1.ResourceList{
		"count/deployments.apps": resource.Quantity{}, "count/poddisruptionbudgets.policy": resource.Quantity{},
	}, "deployments", &policyv1.PodDisruptionBudget{})
}

// KeepPods is a [Limit]: the API server refuses to delete Pods of a namespace. There has to be one.
func KeepPods(ctx context.Context, namespace string) (lift func(context.Context) error) {
	ginkgo.GinkgoHelper()
	name := metav1.ObjectMeta{Name: namespace}
	pods := admissionv1.NamedRuleWithOperations{}
	pods.Operations = []admissionv1.OperationType{admissionv1.Delete}
	pods.Rule = admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	require(current.admin.Create(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{pods}},
		Validations:      []admissionv1.Validation{{Expression: "request.namespace != '" + namespace + "'", Reason: new(metav1.StatusReasonForbidden)}},
	}}))
	refused := func(ctx context.Context, want bool) error {
		return until(ctx, "the policy of namespace "+namespace+" is in effect, or is not any more", func(ctx context.Context) (bool, error) {
			err := current.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.DryRunAll)
			if apierrors.IsForbidden(err) {
				return want, nil
			}
			return !want, err
		})
	}
	require(current.admin.Create(ctx, binding))
	require(refused(ctx, true))
	return func(ctx context.Context) error {
		return cmp.Or(current.admin.Delete(ctx, binding), refused(ctx, false))
	}
}

// nowhere is a resource that no node has.
const nowhere = corev1.ResourceName("example.org/nowhere")

// LeavePodsPending is a [Limit]: new Pods of a namespace ask for a resource that no node has, and stay Pending. lift deletes these
// Pods, and others come in their place. A quota of the namespace must have room for a Pod.
func LeavePodsPending(ctx context.Context, namespace string) (lift func(context.Context) error) {
	ginkgo.GinkgoHelper()
	one := corev1.ResourceList{nowhere: resource.MustParse("1")}
	require(setDefaults(ctx, namespace, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: one, DefaultRequest: one}))
	return func(ctx context.Context) error {
		if err := setDefaults(ctx, namespace); err != nil {
			return err
		}
		pending := client.MatchingFields{"status.phase": string(corev1.PodPending)}
		return current.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), pending)
	}
}

// setDefaults sets the default resources of containers in a namespace, and returns when they are in effect: when a new container asks
// for [nowhere], or no longer does if there are no limits. It never deletes the LimitRange, because the API server caches it for half
// a minute.
func setDefaults(ctx context.Context, namespace string, limits ...corev1.LimitRangeItem) error {
	object := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"}}
	_, err := controllerutil.CreateOrUpdate(ctx, current.admin, object, func() error {
		object.Spec.Limits = limits
		return nil
	})
	if err != nil {
		return err
	}
	return until(ctx, "the defaults of namespace "+namespace+" are in effect", func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: current.config.MemcachedImage}}},
		}
		err := current.admin.Create(ctx, pod, client.DryRunAll)
		_, asks := pod.Spec.Containers[0].Resources.Requests[nowhere]
		return asks == (len(limits) > 0), err
	})
}

// limit makes a quota, and returns when it is in effect. The quota's status does not tell: the API server's admission learns of the
// quota later. So hard also forbids the kind of tried, which nobody else creates here, and limit tries to create tried until that is
// refused.
func limit(ctx context.Context, namespace string, hard corev1.ResourceList, name string, tried client.Object) func(context.Context) error {
	ginkgo.GinkgoHelper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	require(current.admin.Create(ctx, quota))
	require(until(ctx, "the quota of namespace "+namespace+" is in effect", func(ctx context.Context) (bool, error) {
		tried.SetNamespace(namespace)
		tried.SetName("probe")
		err := current.admin.Create(ctx, tried, client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	}))
	return func(ctx context.Context) error { return client.IgnoreNotFound(current.admin.Delete(ctx, quota)) }
}

// until polls until holds returns true without an error. After [EventuallyTimeout] it returns the last error.
func until(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	var last error
	err := utilwait.PollUntilContextTimeout(ctx, GomegaPollInterval, EventuallyTimeout, true, func(ctx context.Context) (yes bool, _ error) {
		yes, last = holds(ctx)
		return yes && last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, cmp.Or(last, err))
	}
	return nil
}
