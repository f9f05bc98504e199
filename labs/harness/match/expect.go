package match

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// Exist wants a Deployment that is there.
func Exist() *Matcher {
	m := Deployment(func(*appsv1.Deployment) error { return nil })
	m.exists = true
	return m
}

// BeSameAs wants the Deployment that was there before, changed or not: to delete it and create another one ends all of its
// Pods for a change that may need none.
func BeSameAs(before *appsv1.Deployment) *Matcher {
	return Make(func(d *appsv1.Deployment) error {
		if d.UID == before.UID {
			return nil
		}
		return env.Final(finding.New("replaced", "Deployment "+before.Name+" is changed where it is", "it was deleted"))
	}).KeepCause()
}

// BeGone wants a Memcached that is deleted to be gone.
func BeGone() *Matcher {
	return Make(func(obj *unstructured.Unstructured) error {
		if obj.GetUID() == "" {
			return nil
		}
		return finding.New("memcached-stuck", "the deleted Memcached goes", "it is still there, held by finalizers %q", obj.GetFinalizers())
	}).KeepCause()
}

// BeCollected wants an object of a kind that the garbage collector has removed.
func BeCollected(kind string) *Matcher {
	return Make(func(obj client.Object) error {
		if obj.GetUID() == "" {
			return nil
		}
		return finding.New("not-collected", "the "+kind+" goes after its Memcached was deleted", "it is still there, with owner references %v", obj.GetOwnerReferences())
	}).KeepCause().ByKubernetes(0)
}

// HaveCondition wants a Memcached with a condition of a type that has a status.
func HaveCondition(kind string, status metav1.ConditionStatus) *Matcher {
	return Make(func(obj *unstructured.Unstructured) error {
		c, err := env.Condition(obj, kind)
		if err != nil || c != nil && c.Status == status {
			return err
		}
		seen := "no condition " + kind
		if c != nil {
			seen = fmt.Sprintf("it is %s (%s: %s)", c.Status, c.Reason, c.Message)
		}
		return finding.New("wrong-condition", fmt.Sprintf("%s is %s", kind, status), "%s", seen)
	})
}

// HaveReplicas wants a Deployment that asks for so many replicas.
func HaveReplicas(want int32) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if have := ptr.Deref(d.Spec.Replicas, 1); have != want {
			return finding.New("wrong-replicas", fmt.Sprintf("spec.replicas %d, as the Memcached's spec.size", want), "spec.replicas %d", have)
		}
		return nil
	})
}

// HavePort wants a Deployment whose container is told a port: in its command, its arguments or its environment. The list of
// ports tells memcached nothing, which shows only where Pods are real.
func HavePort(want int32) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if !env.TellsPort(d, want) {
			return finding.New("port-not-told", fmt.Sprintf("the container is told port %d", want), "it is started with %q", env.CommandLine(d))
		}
		return nil
	})
}

// HaveAvailablePods wants a [env.Rollout] with so many Pods that are available, and no others. Otherwise the finding is what keeps
// them from becoming available, if that shows.
func HaveAvailablePods(want int32) *Matcher {
	return ofDeployment(func(r env.Rollout) error {
		s := r.Deployment.Status
		switch {
		case s.ObservedGeneration >= r.Generation && s.AvailableReplicas == want && s.Replicas == want && s.UpdatedReplicas == want:
			return nil
		case r.Trouble != nil:
			return r.Trouble
		}
		return finding.New("too-few", fmt.Sprintf("%d available Pods", want), "%d available of %d", s.AvailableReplicas, s.Replicas)
	}).ByKubernetes(env.PodsTimeoutAfterFailure)
}

// KeepRunning wants Pods of which no container has ended by itself. Without a readiness probe, which nobody has to write, a
// container that ends at once counts as available for a moment.
func KeepRunning() *Matcher { return Make(env.Ended) }

// ExpectCreated makes a Memcached of a random size in a namespace, and waits for its Deployment.
func ExpectCreated(ctx context.Context, namespace string) env.Memcached {
	ginkgo.GinkgoHelper()
	m := env.NewMemcached(namespace)
	gomega.Expect(m.Create(ctx)).To(gomega.Succeed())
	ExpectDeployment(ctx, m)
	return m
}

// ExpectDeployment waits for the Deployment of a Memcached, and returns it.
func ExpectDeployment(ctx context.Context, m env.Memcached) *appsv1.Deployment {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, env.DeploymentOf(m)).Should(Exist())
	d, err := m.Deployment(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	return d
}

// ExpectPods waits until all Pods of a Memcached are available, and no others are left.
func ExpectPods(ctx context.Context, m env.Memcached) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).Should(HaveAvailablePods(m.Size))
}

const (
	// listenTimeout is how long memcached may take to listen after its container has started, and listenInterval how often it
	// is asked: each time is a request to the API server.
	listenTimeout, listenInterval = 5 * time.Second, 100 * time.Millisecond
	// lateTimeout is how long [ExpectSoon] waits for the operator, and stallTimeout how long for all: operators that poll look every
	// five seconds or so, and should hear that they do.
	lateTimeout, stallTimeout = 6 * time.Second, 30 * time.Second
)

// ExpectEachPod waits, for each Pod of a Memcached that is not being deleted, until ask returns nil, and returns these Pods:
// memcached in a Pod that is available may not listen yet.
func ExpectEachPod(ctx context.Context, m env.Memcached, ask func(context.Context, corev1.Pod) error) (asked []corev1.Pod) {
	ginkgo.GinkgoHelper()
	pods, err := m.Pods(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue // of the roll-out before
		}
		answers := func(ctx context.Context) error { return ask(ctx, pod) }
		gomega.Eventually(ctx, answers).WithTimeout(listenTimeout).WithPolling(listenInterval).Should(gomega.Succeed())
		asked = append(asked, pod)
	}
	return asked
}

// ExpectSoon does something, waits until want holds of what read reads, and returns how long that took. After six seconds the
// wait ends with late, if that is an error.
func ExpectSoon[T any](ctx context.Context, act func(context.Context) error, read func(context.Context) (T, error), want *Matcher, late func() error) (took time.Duration) {
	ginkgo.GinkgoHelper()
	gomega.Expect(act(ctx)).To(gomega.Succeed())
	began := time.Now()
	want.ByKubernetes(stallTimeout) // a manager that polls does nothing for a while, and is too slow
	gomega.Eventually(ctx, read).WithTimeout(stallTimeout).Should(want.StopIf(func() error {
		if err := late(); err != nil && time.Since(began) > lateTimeout {
			return finding.Of(err).TooLate()
		}
		return nil
	}))
	return time.Since(began)
}

const (
	// stablePeriod is how long nothing may change before a Memcached is taken to be at rest: more than a second, because some
	// operators write each second. stableTimeout is how long it may take to come to rest.
	stablePeriod, stableTimeout = 1100 * time.Millisecond, 12 * time.Second
	// maxWrites is how many mutating requests a manager may send about one Memcached in a [env.QuietPeriod] at rest. A loop
	// sends hundreds; an operator that applies again on each pass, a few.
	maxWrites = 10
)

// BeAsBefore wants an [env.State] in which nothing has changed.
func BeAsBefore(before env.State) *Matcher {
	return Make(func(now env.State) error { return now.Since(before) })
}

// ExpectStable waits until neither the Deployment nor the status of the Memcached has changed for a second.
func ExpectStable(ctx context.Context, m env.Memcached) {
	ginkgo.GinkgoHelper()
	changed, err := m.AwaitRest(ctx, stablePeriod, stableTimeout)
	gomega.Expect(err).To(gomega.Succeed())
	gomega.Expect(changed).To(gomega.Succeed())
}

// ExpectUnchanged does something that asks for no work, and holds the manager to it: the Deployment and the status stay as
// they are for a [env.QuietPeriod], hardly any write is sent, and no other object is changed again and again.
func ExpectUnchanged(ctx context.Context, m env.Memcached, act func()) {
	ginkgo.GinkgoHelper()
	before, err := m.State(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	since := env.RequestCount()
	act()
	quiet := func() {
		ginkgo.GinkgoHelper()
		gomega.Consistently(ctx, env.StateOf(m)).WithTimeout(env.QuietPeriod).Should(BeAsBefore(before))
	}
	quiet()
	if n := len(m.Writes(since)); n > maxWrites/2 && n <= maxWrites {
		// A manager that comes back five times a second gets no further on a slow machine. One that is at rest by now
		// sends nothing more.
		quiet()
	}
	if writes := m.Writes(since); len(writes) > maxWrites {
		gomega.Expect(finding.New("too-many-writes", fmt.Sprintf("at most %d writes in %s of rest", maxWrites, env.QuietPeriod),
			"%d, the last of them: %s", len(writes), writes[len(writes)-1])).To(gomega.Succeed())
	}
	if other := m.Rewritten(since); other != "" {
		gomega.Expect(finding.New("others-changed", "a no-op reconcile writes nothing", "%s was changed again and again", other)).To(gomega.Succeed())
	}
}
