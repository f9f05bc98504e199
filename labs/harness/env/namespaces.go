package env

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/onsi/ginkgo/v2"
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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/trace"
)

// checkNamespace begins the names of the namespaces that checks work in.
const checkNamespace = trace.NamespacePrefix

// namespacesPerCheck is how many namespaces one check may work in.
const namespacesPerCheck = 2

// namespaceName is the name of a check's n-th namespace, should that check run in the given process. Every process knows
// all of these names before the first manager starts, because a manager is told then what not to show of the cluster.
func namespaceName(run string, process int, check string, n int) string {
	h := fnv.New64a()
	fmt.Fprint(h, run, "/", process, "/", check, "/", n)
	suffix := strconv.FormatUint(h.Sum64(), 36)
	return checkNamespace + check + "-" + suffix[len(suffix)-5:]
}

// hiddenFrom are the namespaces in which checks of other processes may work.
func hiddenFrom(process, processes int, run string, checks []string) []string {
	var hidden []string
	for other := 1; other <= processes; other++ {
		if other == process {
			continue
		}
		for _, check := range checks {
			for n := range namespacesPerCheck {
				hidden = append(hidden, namespaceName(run, other, check, n))
			}
		}
	}
	return hidden
}

// namespaceFilter shows a manager everything but those namespaces.
func namespaceFilter(hidden []string) apiproxy.NamespaceFilter {
	return apiproxy.NamespaceFilter{Hidden: hidden, Namespaced: namespaced}
}

// namespaced says whether a resource lies in namespaces, as the API server's discovery has it. One that it does not know
// does not.
func namespaced(group, resource string) (bool, error) {
	mapper := current.admin.RESTMapper()
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind())
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// awaitDiscovery returns when the API server tells of Memcacheds, a moment after they are Established: a manager that
// asked before would be shown all of them.
func awaitDiscovery(ctx context.Context) {
	_ = utilwait.PollUntilContextTimeout(ctx, pollInterval, discoveryTimeout, true, func(context.Context) (bool, error) {
		_, err := current.admin.RESTMapper().RESTMapping(gvk.GroupKind())
		return err == nil, nil
	})
}

// addNamespace gives the check the name of another namespace.
func (c *check) addNamespace() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.namespaces) == namespacesPerCheck {
		return "", fmt.Errorf("the check %s wants more than %d namespaces: raise namespacesPerCheck in labs/harness", c.id, namespacesPerCheck)
	}
	namespace := namespaceName(current.shared.Run, ginkgo.GinkgoParallelProcess(), c.id, len(c.namespaces))
	c.namespaces = append(c.namespaces, namespace)
	return namespace, nil
}

// Namespace makes a namespace for the running check. When the check ends, its Memcacheds are deleted, so that the manager
// works for the next check alone. The rest is deleted only if the cluster stays, or if its Pods take the place of others:
// to end a Pod takes half a second of the machine, and to empty a namespace takes about seventy requests, which would slow
// the next checks. What cannot be deleted stays until the cluster goes.
func Namespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	return newNamespace(ctx, reserves)
}

// reserves says whether a Pod in the namespace keeps a part of the node from the Pods of other checks, or may do so.
func reserves(ctx context.Context, namespace string) bool {
	var list appsv1.DeploymentList
	if err := current.admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return true
	}
	return slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
		pod := d.Spec.Template.Spec
		return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
			return len(c.Resources.Requests)+len(c.Resources.Limits) > 0
		})
	})
}

// newNamespace makes one that is deleted when the check ends. Of a cluster that is to be deleted as a whole, only the
// Memcacheds are deleted, and the Deployments if they burden others.
func newNamespace(ctx context.Context, burdens func(ctx context.Context, namespace string) bool) string {
	ginkgo.GinkgoHelper()
	name, err := running().addNamespace()
	require(err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := current.admin.Create(ctx, ns); err != nil {
		require(fmt.Errorf("create namespace: %w", err))
	}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if current.env != nil {
			current.env.trace.End(name)
		}
		// Not a NodeTimeout: that a slow machine does not come to it is no fault of the learner's.
		ctx, cancel := context.WithTimeout(ctx, StopTimeout)
		defer cancel()
		var kinds []client.Object
		if current.config.NeedsManager() {
			kinds = append(kinds, Memcached{}.object())
		}
		if !current.config.Disposable || burdens(ctx, name) {
			kinds = append(kinds, &appsv1.Deployment{}) // the namespace takes them along, but not at once
		}
		for _, kind := range kinds {
			_ = current.admin.DeleteAllOf(ctx, kind, client.InNamespace(name), client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if !current.config.Disposable {
			_ = current.admin.Delete(ctx, ns)
		}
	})
	return name
}

// NamespaceWithoutPods is a [Namespace] in which a quota admits no Pods. Checks that judge objects alone
// work there, so that they do not wait for containers, and leave the machine to those that do.
func NamespaceWithoutPods(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	ns := newNamespace(ctx, func(context.Context, string) bool { return true }) // Kubernetes goes on trying to make the Pods
	require(Quota(ctx, ns, 0))
	return ns
}

// PendingNamespace is a [Namespace] in which Pods exist and wait for ever, so that no news of a Deployment starts a pass.
func PendingNamespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	ns := Namespace(ctx)
	_, err := LeavePodsPending(ctx, ns)
	require(err)
	return ns
}

// Quota limits the number of Pods in a namespace, and waits until the limit counts.
func Quota(ctx context.Context, namespace string, pods int64) error {
	hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI), "count/leases.coordination.k8s.io": resource.Quantity{}}
	return limitObjects(ctx, namespace, quotaName, hard, &coordinationv1.Lease{})
}

// The names of the quotas of [Quota] and of [RefuseDeployments].
const quotaName, deploymentsQuota = "pods", "deployments"

// RefuseDeployments has the API server refuse every new Deployment in a namespace, by a quota, until lift is called.
func RefuseDeployments(ctx context.Context, namespace string) (lift func(context.Context) error, _ error) {
	none := corev1.ResourceList{"count/deployments.apps": resource.Quantity{}, "count/poddisruptionbudgets.policy": resource.Quantity{}}
	err := limitObjects(ctx, namespace, deploymentsQuota, none, &policyv1.PodDisruptionBudget{})
	return func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deploymentsQuota}}
		if err := current.admin.Delete(ctx, quota); err != nil {
			return fmt.Errorf("delete quota: %w", err)
		}
		return nil
	}, err
}

// nowhere is a resource that no node has.
const nowhere = corev1.ResourceName("example.org/nowhere")

// LeavePodsPending has new Pods of a namespace wait for a node that has what none has, until lift is called. That deletes
// those that wait, and others come in their place. A quota of the namespace must have room for a Pod.
func LeavePodsPending(ctx context.Context, namespace string) (lift func(context.Context) error, _ error) {
	one := corev1.ResourceList{nowhere: resource.MustParse("1")}
	err := setDefaults(ctx, namespace, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: one, DefaultRequest: one})
	if err == nil {
		err = awaitPodsPending(ctx, namespace, true)
	}
	return func(ctx context.Context) error {
		if err := setDefaults(ctx, namespace); err != nil {
			return err
		}
		if err := awaitPodsPending(ctx, namespace, false); err != nil {
			return err
		}
		pending := client.MatchingFields{"status.phase": string(corev1.PodPending)}
		if err := current.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), pending); err != nil {
			return fmt.Errorf("delete the Pods that wait: %w", err)
		}
		return nil
	}, err
}

// setDefaults says what containers of a namespace ask for that do not say so themselves. It never deletes the LimitRange:
// the API server would remember it for half a minute.
func setDefaults(ctx context.Context, namespace string, limits ...corev1.LimitRangeItem) error {
	object := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"}}
	_, err := controllerutil.CreateOrUpdate(ctx, current.admin, object, func() error {
		object.Spec.Limits = limits
		return nil
	})
	if err != nil {
		return fmt.Errorf("set what containers ask for: %w", err)
	}
	return nil
}

// awaitPodsPending waits until new Pods of a namespace ask for [nowhere], or no longer do.
func awaitPodsPending(ctx context.Context, namespace string, want bool) error {
	return until(ctx, "the Pods of namespace "+namespace+" wait, or no longer do", func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: current.config.MemcachedImage}}},
		}
		err := current.admin.Create(ctx, pod, client.DryRunAll)
		_, waits := pod.Spec.Containers[0].Resources.Requests[nowhere]
		return waits == want, err
	})
}

// limitObjects makes a quota, and returns when it counts. Its status is known to others before it is to what admits objects in the API
// server, so hard also limits the kind of tried to none, of which nobody else makes any here, and tried is tried until it is refused.
func limitObjects(ctx context.Context, namespace, name string, hard corev1.ResourceList, tried client.Object) error {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
	if err := current.admin.Create(ctx, quota); err != nil {
		return fmt.Errorf("create quota: %w", err)
	}
	return until(ctx, "the quota of namespace "+namespace+" counts", func(ctx context.Context) (bool, error) {
		tried.SetNamespace(namespace)
		tried.SetName("probe")
		err := current.admin.Create(ctx, tried, client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}

// until polls, through errors, until is says so. The error is the last one, if there was one.
func until(ctx context.Context, what string, is func(context.Context) (bool, error)) error {
	var last error
	err := utilwait.PollUntilContextTimeout(ctx, pollInterval/2, EventuallyTimeout, true, func(ctx context.Context) (yes bool, _ error) {
		yes, last = is(ctx)
		return yes && last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, cmp.Or(last, err))
	}
	return nil
}
