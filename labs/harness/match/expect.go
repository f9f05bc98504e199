package match

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// Exist wants a Deployment that exists.
func Exist() *Matcher {
	m := Deployment(func(*appsv1.Deployment) error { return nil })
	m.exists = true
	return m
}

// BeSameAs wants the same Deployment as before, changed or not. An operator that deletes it and creates another one ends all of its
// Pods.
func BeSameAs(before *appsv1.Deployment) *Matcher {
	return Make(func(d *appsv1.Deployment) error {
		if d.UID == before.UID {
			return nil
		}
		return env.Final(finding.New("replaced", "Deployment "+before.Name+" is changed where it is", "it was deleted"))
	}).KeepCause()
}

// BeGone wants a deleted Memcached to be gone.
func BeGone() *Matcher {
	return Make(func(obj *unstructured.Unstructured) error {
		if obj.GetUID() == "" {
			return nil
		}
		return finding.New("memcached-stuck", "the deleted Memcached goes", "it is still there, held by finalizers %q", obj.GetFinalizers())
	}).KeepCause()
}

// HaveCondition wants a Memcached with a condition of type kind that has this status.
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

// HaveWarning wants a Warning among the events of a Memcached, with a word in its note, in upper or lower case.
func HaveWarning(word string) *Matcher {
	return Make(func(events []eventsv1.Event) error {
		if slices.ContainsFunc(events, func(e eventsv1.Event) bool {
			return e.Type == corev1.EventTypeWarning && strings.Contains(strings.ToLower(e.Note), word)
		}) {
			return nil
		}
		return finding.New("no-warning", fmt.Sprintf("a Warning on the Memcached, with %q in its note", word), "none among %d events", len(events))
	})
}

// HaveReplicas wants a Deployment with this number in spec.replicas.
func HaveReplicas(want int32) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if have := ptr.Deref(d.Spec.Replicas, 1); have != want {
			return finding.New("wrong-replicas", fmt.Sprintf("spec.replicas %d, as the Memcached's spec.size", want), "spec.replicas %d", have)
		}
		return nil
	})
}

// number finds whole numbers, also after a letter, as in -p11211.
var number = regexp.MustCompile(`[0-9]+`)

// BeTold wants a Deployment whose container gets a number, such as its "port", by its command, its arguments or its environment. The
// list of ports does not count: it tells memcached nothing. The cause is what and "-not-told".
func BeTold(what string, want any) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if said := env.CommandLine(d); !slices.Contains(number.FindAllString(said, -1), fmt.Sprint(want)) {
			return finding.New(what+"-not-told", fmt.Sprintf("the container is told %v as its %s", want, what), "it is started with %q", said)
		}
		return nil
	})
}

// haveAvailablePods wants an [env.Rollout] with this number of available Pods, and no others. Otherwise it returns [env.Rollout]'s
// Trouble, if there is any.
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

// ExpectCreated creates the Memcached that [env.NewMemcached] makes, and waits for its Deployment.
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
	// listenTimeout is how long memcached may take to listen after its container has started. listenInterval is the pause between
	// two tries, each of which is a request to the API server.
	listenTimeout, listenInterval = 5 * time.Second, 100 * time.Millisecond
	// podsTimeout is how long real Pods may take to become available. They took 2 s on a quiet machine, and 28 s on one with twenty
	// runnable programs for each core. The wait ends early if something is seen that keeps them from becoming available.
	podsTimeout = 60 * time.Second
	// podsTimeoutAfterFailure replaces podsTimeout if another check has failed: 2 s for a start on a quiet machine, and 5 s for a
	// readiness probe. An operator that fights the Deployment controller would otherwise use up podsTimeout.
	podsTimeoutAfterFailure = 8 * time.Second
)

// ExpectAnswers asks memcached in each Pod of a Memcached until judge returns nil for its answer: memcached in an available Pod may
// not listen yet. It also wants each Pod to be reachable from outside. Call it after [ExpectPods].
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
	// stablePeriod is how long nothing may change until a Memcached is taken to be at rest: more than a second, because some
	// operators write once a second. stableTimeout is how long a Memcached may take to come to rest.
	stablePeriod, stableTimeout = 1100 * time.Millisecond, 12 * time.Second
	// maxWrites is how many mutating requests a manager may send for one Memcached in an [env.QuietPeriod] without work. A loop
	// sends hundreds. An operator that applies on each pass sends a few.
	maxWrites = 10
)

// ExpectStable waits until neither the Memcached nor its Deployment has changed for a second.
func ExpectStable(ctx context.Context, m env.Memcached) {
	ginkgo.GinkgoHelper()
	changed, err := m.AwaitRest(ctx, stablePeriod, stableTimeout)
	gomega.Expect(err).To(gomega.Succeed())
	gomega.Expect(changed).To(gomega.Succeed())
}

// ExpectUnchanged calls act, which gives the manager nothing to do. Then it wants the Memcached and its Deployment unchanged for
// [env.QuietPeriod], at most ten writes, and no other object that is changed again and again.
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
		// On a slow machine, a manager that writes five times a second may send so few. A right one has sent its last write.
		quiet()
	}
	if writes := m.Writes(since); len(writes) > maxWrites {
		gomega.Expect(finding.New("too-many-writes", fmt.Sprintf("at most %d writes in %s of rest", maxWrites, env.QuietPeriod),
			"%d, the last of them: %s", len(writes), writes[len(writes)-1])).To(gomega.Succeed())
	}
	if other := m.Rewritten(since); other != "" {
		gomega.Expect(finding.New("others-changed", "a no-op reconcile writes nothing",
			"%s was changed again and again", other)).To(gomega.Succeed())
	}
}
