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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/harness/registry"
)

const (
	// awayPeriod is how long the registry is away. An operator pauses longer and longer, so it must not be long.
	awayPeriod = 3 * time.Second
	// backTimeout is the contract's limit for what has to happen once the registry is back, or was changed by somebody.
	backTimeout = 10 * time.Second
	// refusedWrites is how long the API server refuses what the manager writes, and refusals how many are enough: those of two passes.
	refusedWrites, refusals = 2 * time.Second, 7
	// slowness is how long a slow answer takes: longer than any operator needs for the others.
	slowness = 6 * time.Second
	// noticePeriod is how long the registry may take to notice that somebody no longer waits for its answer.
	noticePeriod = time.Second / 4
	// refusedPeriod is how long an entry is refused, and mostTries how often it may be sent meanwhile.
	refusedPeriod, mostTries = 10 * time.Second, 5
	// restPeriod is how long the registry is listened to at rest.
	restPeriod = 5 * time.Second
	// stayPeriod is how long something has to stay as it is. Who would change it does so within milliseconds.
	stayPeriod = time.Second
)

// troubles are what a registry that is away answers, those that are misread most first. A program has tried four times before the
// registry is back.
var troubles = []int{http.StatusTooManyRequests, http.StatusConflict, registry.BreakOff, http.StatusServiceUnavailable}

const (
	// neighbours is how many Memcacheds are made while the registry is slow with another one.
	neighbours = 4
	// passes is how many passes without a change of the spec there are while an entry is refused, at least.
	passes = 8
)

var _ = Describe("Lab 10", env.Lab(10), func() {
	It("registers each Memcached", env.Check("registers", env.First), func(ctx SpecContext) {
		namespace := env.NamespaceWithoutPods(ctx)
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
		namespace := env.NamespaceWithoutPods(ctx)
		promised := env.NewMemcached(namespace)
		broken := onPut(promised, hasFinalizer)
		ask := func() error { return promised.Create(ctx) } // while nothing can be written, and no promise either
		Expect(faults.RefuseWrites(ctx, namespace, apiproxy.ReadOnly, refusedWrites, refusals, ask)).To(Succeed())
		registered := find(ctx, promised)
		Eventually(ctx, entriesOf(registered)).Should(haveItsEntry(registered))
		Expect(broken()).To(Succeed())
		killed := env.NewMemcached(namespace)
		dead := make(chan struct{})
		kill := sync.OnceFunc(func() { env.Manager().Kill(); close(dead) })
		onPut(killed, func(*unstructured.Unstructured) error { kill(); return nil }) // the entry is made all the same
		m := create(ctx, killed)
		Eventually(dead).WithContext(ctx).Should(BeClosed())
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Expect(env.Manager().Start(env.Run().MemcachedImage)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.BeGone())
		Eventually(ctx, entriesOf(m)).Should(haveNoEntry(m, "orphaned"))
	})

	It("cleans up there before it lets go here", env.Check("cleanup-before-finalizer-removal"), func(ctx SpecContext) {
		namespace := env.NamespaceWithoutPods(ctx)
		m, other := register(ctx, env.NewMemcached(namespace)), register(ctx, env.NewMemcached(namespace))
		late := watchDeletion(m)
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.BeGone())
		Expect(isRemoved(m, "finalizer-removed-first")).To(Succeed())
		Expect(late()).To(Succeed())
		watch(other.uid, http.MethodDelete, func(context.Context, registry.Request) error { // somebody else does so a moment before
			env.Registry().Edit(other.uid, nil)
			return nil
		})
		Expect(other.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(other.Memcached)).Should(match.BeGone().Because("stuck-at-404"))
	})

	It("waits for a registry that is away", env.Check("waits-for-registry"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		m, running := register(ctx, withOnePod(namespace)), register(ctx, withOnePod(namespace))
		match.ExpectPods(ctx, m.Memcached)
		match.ExpectPods(ctx, running.Memcached)
		Eventually(ctx, env.MemcachedOf(running.Memcached)).Should(beAvailable())
		left, back := time.Now(), behave(registry.Everybody, registry.Behaviour{Statuses: troubles})
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		late := create(ctx, env.NewMemcached(namespace))
		Expect(running.Annotate(ctx)).To(Succeed()) // which makes a pass
		Eventually(ctx, env.DeploymentOf(late.Memcached)).Should(match.Exist().Because("blocked-by-slow-call"))
		Eventually(ctx, env.MemcachedOf(late.Memcached)).Should(match.Make(sayWhatIsKnown))
		Consistently(ctx, env.MemcachedOf(running.Memcached)).WithTimeout(max(stayPeriod, awayPeriod-time.Since(left))).Should(beAvailable())
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(stay("finalizer-removed-early"))
		Eventually(ctx, env.MemcachedOf(late.Memcached)).Should(match.Make(sayWhatIsKnown))
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
		namespace := env.NamespaceWithoutPods(ctx)
		slow := register(ctx, env.NewMemcached(namespace))
		asked := slowDown(slow)
		Expect(slow.SetSpec(ctx, "size", 1+slow.Size%5)).To(Succeed())
		Eventually(asked).WithContext(ctx).Should(BeClosed())
		var others []cache
		for range neighbours {
			others = append(others, create(ctx, env.NewMemcached(namespace)))
		}
		for _, m := range others {
			Eventually(ctx, entriesOf(m)).Should(haveItsEntry(m).Because("blocked-by-slow-call").ByKubernetes(slowness))
		}
		Expect(env.Sleep(ctx, noticePeriod)).To(Succeed())
		Expect(wereServedMeanwhile(slow, others)).To(Succeed())
	})

	It("looks again", env.Check("corrects-external-drift"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx) // where no news of refused Pods make a pass by luck
		m, changed, waiting := register(ctx, withOnePod(namespace)), register(ctx, withOnePod(namespace)), register(ctx, withOnePod(namespace))
		all := []cache{m, changed, waiting}
		for _, one := range all {
			match.ExpectPods(ctx, one.Memcached)
		}
		Expect(waiting.SetSpec(ctx, "optionsFrom", map[string]string{"name": env.RandomName()})).To(Succeed()) // which is not there
		for _, one := range all {
			Expect(one.WaitIdle(ctx)).To(Succeed())
		}
		env.Registry().Edit(m.uid, nil)
		env.Registry().Edit(changed.uid, &registry.Entry{Namespace: namespace, Name: changed.Name, Size: changed.Size + 1})
		env.Registry().Edit(waiting.uid, &registry.Entry{Namespace: namespace, Name: env.RandomName(), Size: waiting.Size})
		for _, one := range all {
			Eventually(ctx, entriesOf(one)).WithTimeout(backTimeout).Should(haveItsEntry(one).Because("drift-not-corrected").ByKubernetes(backTimeout))
		}
		before := len(env.Registry().Requests(m.uid))
		Expect(env.Sleep(ctx, restPeriod)).To(Succeed())
		Expect(restsFor(restPeriod, len(env.Registry().Requests(m.uid))-before)).To(Succeed())
	})

	It("takes no for an answer", env.Check("no-retry-on-422", env.Long), func(ctx SpecContext) {
		m := withOnePod(env.Namespace(ctx))
		relent := behave(registry.Everybody, registry.Behaviour{Statuses: []int{http.StatusUnprocessableEntity}, Only: http.MethodPut})
		refused := create(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(beRegistered(metav1.ConditionFalse))
		for range passes {
			Expect(m.Annotate(ctx)).To(Succeed())
			Expect(env.Sleep(ctx, refusedPeriod/passes)).To(Succeed())
		}
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(beAvailable())
		Expect(triedAtMost(refused)).To(Succeed())
		relent()
		refused.Size++
		Expect(m.SetSpec(ctx, "size", refused.Size)).To(Succeed())
		Eventually(ctx, entriesOf(refused)).Should(haveItsEntry(refused).Because("not-tried-again"))
		Eventually(ctx, env.MemcachedOf(m)).Should(beRegistered(metav1.ConditionTrue))
	})

	It("leaves other finalizers alone", env.Check("others-finalizers"), func(ctx SpecContext) {
		held := env.NewMemcached(env.NamespaceWithoutPods(ctx))
		failed, err := faults.BeforeWrite(held, "", held.Hold) // at the moment at which the manager sends its own
		Expect(err).To(Succeed())
		m := create(ctx, held)
		Eventually(ctx, entriesOf(m)).Should(haveItsEntry(m))
		Expect(failed()).To(Succeed())
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, entriesOf(m)).Should(haveNoEntry(m, "left-behind"))
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(letGo())
		Consistently(ctx, env.MemcachedOf(m.Memcached)).WithTimeout(stayPeriod).Should(stay("finalizer-removed"))
		Expect(isRemoved(m, "registered-anew")).To(Succeed())
		Expect(m.IsSpecUntouched(ctx)).To(Succeed())
		Expect(m.Release(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m.Memcached)).Should(match.BeGone())
		register(ctx, m.Memcached)
	})
})
