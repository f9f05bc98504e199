// Package outside holds the checks of lab 10: each Memcached has an entry in a registry that is no part of the cluster, and
// the operator cleans up there what Kubernetes cannot see.
package outside

import (
	"context"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/harness/registry"
)

const (
	// awayPeriod is how long the registry is away. An operator pauses longer and longer, so it must not be long.
	awayPeriod = 1500 * time.Millisecond
	// backTimeout is the contract's limit for what has to happen once the registry is back, or was changed by somebody.
	backTimeout = 10 * time.Second
	// slowness is how long a slow answer takes, and meanwhile how long others may wait for theirs.
	slowness, meanwhile = 6 * time.Second, 3 * time.Second
	// refusedPeriod is how long an entry is refused, and mostTries how often it may be sent meanwhile, and in ten seconds.
	refusedPeriod, mostTries = 3 * time.Second, 5
	// passes is how many passes without a change of the spec there are while an entry is refused, at least.
	passes = 8
	// restPeriod is how long the registry is listened to at rest, at least.
	restPeriod = 4 * time.Second
	// stayPeriod is how long something has to stay as it is. Who would change it does so within milliseconds.
	stayPeriod = time.Second
)

// troubles are what a registry that is away answers, those that are misread most first; -1 is no answer. A program has tried four
// times before the registry is back.
var troubles = []int{http.StatusTooManyRequests, http.StatusConflict, -1, http.StatusServiceUnavailable}

// They follow each other, because a process restarts its manager where a check needs the registry and the one before had none.
var _ = Describe("Lab 10", env.Lab(10), SpecPriority(7), func() {
	It("registers each Memcached", env.Check("registers"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		m, other := register(ctx, env.NewMemcached(namespace)), register(ctx, env.NewMemcached(namespace))
		m.Size = 1 + m.Size%5
		Expect(m.SetSpec(ctx, "size", m.Size)).To(Succeed())
		for _, one := range []cache{m, other} {
			Eventually(ctx, entriesOf(one)).Should(haveItsEntry(one))
			Eventually(ctx, env.MemcachedOf(one.Memcached)).Should(beRegistered(metav1.ConditionTrue))
			Expect(one.IsSpecUntouched(ctx)).To(Succeed())
		}
	})

	It("promises to clean up before it registers", env.Check("finalizer-before-external-write"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
		killed := make(chan struct{})
		kill := sync.OnceFunc(func() { env.Manager().Kill(); close(killed) })
		wrong := onRequest("", http.MethodPut, func(ctx context.Context, q registry.Request) error {
			if q.Entry.Name != m.Name {
				return nil
			}
			defer kill() // the entry is made all the same
			return hasFinalizer(ctx, m)
		})
		registered := create(ctx, m)
		Eventually(killed).WithContext(ctx).Should(BeClosed())
		Expect(wrong()).To(Succeed())
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		Expect(isRemoved(registered, "orphaned")).To(Succeed())
	})

	It("cleans up there before it lets go here", env.Check("cleanup-before-finalizer-removal"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		m, other := register(ctx, env.NewMemcached(namespace)), register(ctx, env.NewMemcached(namespace))
		wrong := onRequest(m.uid, http.MethodDelete, func(ctx context.Context, _ registry.Request) error {
			return isStillThere(ctx, m, "finalizer-removed-first")
		})
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.BeGone())
		Expect(isRemoved(m, "finalizer-removed-first")).To(Succeed())
		Expect(wrong()).To(Succeed())
		onRequest(other.uid, http.MethodDelete, func(context.Context, registry.Request) error { // somebody else does so a moment before
			env.Registry().Edit(other.uid, nil)
			return nil
		})
		Expect(other.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(other.Memcached)).Should(match.BeGone().Because("stuck-at-404"))
	})

	It("waits for a registry that is away", env.Check("waits-for-registry"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		m, running := register(ctx, env.NewMemcached(namespace, 1)), register(ctx, env.NewMemcached(namespace, 1))
		match.ExpectPods(ctx, running.Memcached)
		Eventually(ctx, env.MemcachedOf(running.Memcached)).Should(beAvailable())
		left, back := time.Now(), behave("", registry.Behaviour{Statuses: troubles})
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		late := create(ctx, env.NewMemcached(namespace))
		Expect(running.Annotate(ctx)).To(Succeed()) // which makes a pass
		Eventually(ctx, env.DeploymentOf(late.Memcached)).Should(match.Exist().Because("blocked-by-slow-call"))
		Eventually(ctx, env.MemcachedOf(late.Memcached)).Should(haveStatus())
		Consistently(ctx, env.MemcachedOf(running.Memcached)).WithTimeout(max(stayPeriod, awayPeriod-time.Since(left))).Should(beAvailable())
		Expect(isStillThere(ctx, m, "finalizer-removed-early")).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.HaveCondition("Degraded", metav1.ConditionTrue).Because("stuck-silently"))
		Eventually(ctx, env.EventsOf(m.Memcached)).Should(match.HaveWarning("registry").Because("stuck-silently"))
		env.Registry().Edit(running.uid, nil)
		back()
		limit := max(backTimeout, 2*time.Since(left)) // each pause of an operator is twice the one before
		Eventually(ctx, env.MemcachedOf(m.Memcached)).WithTimeout(limit).Should(match.BeGone().ByKubernetes(limit))
		Expect(isRemoved(m, "finalizer-removed-early")).To(Succeed())
		Eventually(ctx, entriesOf(running)).WithTimeout(limit).Should(haveItsEntry(running).ByKubernetes(limit))
		Expect(late.Annotate(ctx)).To(Succeed()) // its Pods have started passes, and each that failed has made the pause longer
		Eventually(ctx, entriesOf(late)).Should(haveItsEntry(late))
	})

	It("lets a slow answer hold up nobody", env.Check("concurrent-reconciles"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		slow := register(ctx, env.NewMemcached(namespace))
		behave(slow.uid, registry.Behaviour{Delay: slowness})
		before := len(env.Registry().Requests(slow.uid))
		Expect(slow.SetSpec(ctx, "size", 1+slow.Size%5)).To(Succeed())
		Eventually(func() int { return len(env.Registry().Requests(slow.uid)) }).WithContext(ctx).Should(BeNumerically(">", before))
		other := create(ctx, env.NewMemcached(namespace))
		Eventually(ctx, entriesOf(other)).WithTimeout(meanwhile).Should(haveItsEntry(other).Because("blocked-by-slow-call"))
		Expect(wasServedDuring(slow, other)).To(Succeed())
	})

	It("looks again", env.Check("corrects-external-drift"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.LeavePodsPending) // where no news of Pods make a pass by luck
		lost := register(ctx, env.NewMemcached(namespace, 1))
		waiting, rest := register(ctx, env.NewMemcached(namespace, 1)), register(ctx, env.NewMemcached(namespace, 1))
		Expect(waiting.SetSpec(ctx, "optionsFrom", map[string]string{"name": env.RandomName()})).To(Succeed()) // which is not there
		for _, m := range []cache{lost, waiting, rest} {
			match.ExpectDeployment(ctx, m.Memcached)
			Expect(m.WaitIdle(ctx)).To(Succeed())
		}
		began, before := time.Now(), len(env.Registry().Requests(rest.uid))
		env.Registry().Edit(lost.uid, nil)
		env.Registry().Edit(waiting.uid, &registry.Entry{Namespace: namespace, Name: waiting.Name, Size: waiting.Size + 1})
		for _, m := range []cache{lost, waiting} {
			Eventually(ctx, entriesOf(m)).WithTimeout(backTimeout).Should(haveItsEntry(m).Because("drift-not-corrected").ByKubernetes(backTimeout))
		}
		Expect(env.Sleep(ctx, restPeriod-time.Since(began))).To(Succeed())
		Expect(len(env.Registry().Requests(rest.uid)) - before).To(match.Because("too-many-requests",
			"at most one request a second for an entry at rest",
			BeNumerically("<=", 1+time.Since(began).Seconds())))
	})

	It("takes no for an answer", env.Check("no-retry-on-422"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx), 1)
		relent := behave("", registry.Behaviour{Statuses: []int{http.StatusUnprocessableEntity}, Only: http.MethodPut})
		refused := create(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(beRegistered(metav1.ConditionFalse))
		for range passes {
			Expect(m.Annotate(ctx)).To(Succeed())
			Expect(env.Sleep(ctx, refusedPeriod/passes)).To(Succeed())
		}
		Expect(puts(refused)).To(match.Because("asked-again",
			"an entry that the registry refuses is sent a few times at most", BeNumerically("<=", mostTries)))
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(beAvailable())
		relent()
		refused.Size++
		Expect(m.SetSpec(ctx, "size", refused.Size)).To(Succeed())
		Eventually(ctx, entriesOf(refused)).Should(haveItsEntry(refused).Because("not-tried-again"))
		Eventually(ctx, env.MemcachedOf(m)).Should(beRegistered(metav1.ConditionTrue))
	})

	It("leaves other finalizers alone", env.Check("others-finalizers"), func(ctx SpecContext) {
		held := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
		failed, err := faults.BeforeWrite(held, held.Hold) // at the moment at which the manager sends its own
		Expect(err).To(Succeed())
		m := create(ctx, held)
		Eventually(ctx, entriesOf(m)).Should(haveItsEntry(m))
		Expect(failed()).To(Succeed())
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(held)).Should(loseItsFinalizer())
		Consistently(ctx, env.MemcachedOf(held)).WithTimeout(stayPeriod).Should(match.Because("finalizer-removed",
			"the finalizer of somebody else stays", HaveField("GetFinalizers()", HaveLen(1))))
		Expect(isRemoved(m, "other")).To(Succeed())
		Expect(held.Release(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(held)).Should(match.BeGone())
		register(ctx, held)
	})
})
