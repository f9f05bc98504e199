package match

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

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

// HaveCondition wants a Memcached with a condition of a type that has a status.
func HaveCondition(kind string, status metav1.ConditionStatus) *Matcher {
	return Make(func(obj *unstructured.Unstructured) error {
		c := env.Condition(obj, kind)
		if c != nil && c.Status == status {
			return nil
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

// number finds whole numbers, also behind a letter, as in -p11211.
var number = regexp.MustCompile(`[0-9]+`)

// BeTold wants a Deployment whose container is told a number, such as its "port": in its command, its arguments or its environment.
// The list of ports tells memcached nothing, which shows only where Pods are real.
func BeTold(what string, want any) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if said := env.CommandLine(d); !slices.Contains(number.FindAllString(said, -1), fmt.Sprint(want)) {
			return finding.New(what+"-not-told", fmt.Sprintf("the container is told %v as its %s", want, what), "it is started with %q", said)
		}
		return nil
	})
}

// haveAvailablePods wants a [env.Rollout] with so many Pods that are available, and no others. Otherwise the finding is what keeps
// them from becoming available, if that shows.
func haveAvailablePods(want int32) *Matcher {
	return Deployment(func(r env.Rollout) error {
		s := r.Deployment.Status
		switch {
		case s.ObservedGeneration >= r.Generation && s.AvailableReplicas == want && s.Replicas == want && s.UpdatedReplicas == want:
			return nil
		case r.Trouble != nil:
			return r.Trouble
		}
		return finding.New("too-few", fmt.Sprintf("%d available Pods", want), "%d available of %d", s.AvailableReplicas, s.Replicas)
	}).ByKubernetes(podsTimeoutAfterFailure)
}

// ExpectCreated makes a Memcached in a namespace, as [env.NewMemcached] draws it, and waits for its Deployment.
func ExpectCreated(ctx context.Context, namespace string, size ...int32) env.Memcached {
	ginkgo.GinkgoHelper()
	m := env.NewMemcached(namespace, size...)
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
	gomega.Eventually(ctx, env.RolloutOf(m)).WithTimeout(podsTimeout).Should(haveAvailablePods(m.Size))
}

const (
	// listenTimeout is how long memcached may take to listen after its container has started, and listenInterval how often it
	// is asked: each time is a request to the API server.
	listenTimeout, listenInterval = 5 * time.Second, 100 * time.Millisecond
	// podsTimeout is how long real Pods may take to be available: scheduling, sandbox, start. Two seconds on a quiet machine, and 28 s
	// were seen on one with twenty runnable programs for each core; Pods that cannot become available for a reason that shows are not
	// waited for.
	podsTimeout = 60 * time.Second
	// podsTimeoutAfterFailure is how long Pods are still waited for once another check has failed. Two seconds is what a quiet machine
	// needs, and a readiness probe is given five to succeed; an operator that fights the Deployment controller would use up podsTimeout.
	podsTimeoutAfterFailure = 8 * time.Second
)

// ExpectAnswers asks memcached in each Pod of a Memcached whose roll-out has ended, until judge returns nil for its answer, and wants
// each Pod to be reached from outside. memcached in a Pod that is available may not listen yet.
func ExpectAnswers(ctx context.Context, m env.Memcached, question string, judge func(answer string) error) {
	ginkgo.GinkgoHelper()
	pods, err := m.Pods(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue // of the roll-out before
		}
		gomega.Eventually(ctx, func(ctx context.Context) error {
			answer, err := env.Ask(ctx, pod, m.Port, question)
			if err != nil {
				return err
			}
			return judge(answer)
		}).WithTimeout(listenTimeout).WithPolling(listenInterval).Should(gomega.Succeed())
		gomega.Expect(env.Reachable(ctx, pod, m.Port)).To(gomega.Succeed())
	}
}

const (
	// stablePeriod is how long nothing may change before a Memcached is taken to be at rest: more than a second, because some
	// operators write each second. stableTimeout is how long it may take to come to rest.
	stablePeriod, stableTimeout = 1100 * time.Millisecond, 12 * time.Second
	// maxWrites is how many mutating requests a manager may send about one Memcached in a [env.QuietPeriod] at rest. A loop
	// sends hundreds; an operator that applies again on each pass, a few.
	maxWrites = 10
)

// ExpectStable waits until neither the Deployment nor the status of the Memcached has changed for a second.
func ExpectStable(ctx context.Context, m env.Memcached) {
	ginkgo.GinkgoHelper()
	changed, err := m.AwaitRest(ctx, stablePeriod, stableTimeout)
	gomega.Expect(err).To(gomega.Succeed())
	gomega.Expect(changed).To(gomega.Succeed())
}

// ExpectUnchanged does something that asks for no work, and holds the manager to it: the Deployment and the status stay as
// they are for [env.QuietPeriod], hardly any write is sent, and no other object is changed again and again.
func ExpectUnchanged(ctx context.Context, m env.Memcached, act func()) {
	ginkgo.GinkgoHelper()
	before, err := m.State(ctx)
	gomega.Expect(err).To(gomega.Succeed())
	since := env.RequestCount()
	act()
	quiet := func() {
		ginkgo.GinkgoHelper()
		gomega.Consistently(ctx, env.StateOf(m)).Should(Make(func(now env.State) error { return now.Since(before) }))
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
