// Package status holds the checks of lab 8: other programs can use the status of a Memcached. They scale it through the
// scale subresource, and learn from its conditions whether to wait or to help.
package status

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
)

const (
	// admitted is how many of a Memcached's Pods a quota admits where what is observed must differ from what is wanted.
	admitted = 2
	// maxSize is the greatest size that a Memcached may have.
	maxSize = 5
	// resizes is how often the size is changed while the writes of the status are counted, and spareWrites how many more of
	// them there may be.
	resizes, spareWrites = 3, 2
	// idlePasses is how many passes find nothing to do: a list in a random order is in the same one as before three times of
	// four. passPeriod is how long one of them is looked at.
	idlePasses, passPeriod = 20, 50 * time.Millisecond
)

var _ = Describe("Lab 8", env.Lab(8), func() {
	It("tells in its scale what is wanted and what there is", env.Check("scale-reads", env.First), func(ctx SpecContext) {
		Expect(servesScale(ctx)).To(Succeed())
		namespace := env.PendingNamespace(ctx)
		Expect(env.Quota(ctx, namespace, admitted)).To(Succeed())
		m := env.NewMemcached(namespace)
		m.Size = admitted + 2
		Expect(m.Create(ctx)).To(Succeed())
		d := match.ExpectDeployment(ctx, m)
		Eventually(ctx, scaleOf(m)).Should(haveObserved(admitted).ByKubernetes(env.PodsTimeoutAfterFailure))
		empty := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		other := match.ExpectDeployment(ctx, empty)
		Eventually(ctx, scaleOf(m)).Should(pickPods(d, other))
		Eventually(ctx, scaleOf(empty)).Should(pickPods(other, d))
	})

	It("is scaled through its scale", env.Check("scale-writes"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		for _, size := range []int32{maxSize, 1} {
			Expect(rescale(ctx, m, size)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(size).Because("not-followed"))
		}
		Expect(refusesToScale(ctx, m, maxSize+1)).To(Succeed())
	})

	It("leaves the size to its users", env.Check("does-not-own-spec"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Expect(rescale(ctx, m, 1)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(1).Because("not-followed"))
		Expect(m.Annotate(ctx)).To(Succeed())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(m.IsSpecUntouched(ctx)).To(Succeed())
	})

	It("tells when it is done", env.Check("rollout-complete"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 2
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(done))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		before, err := m.State(ctx)
		Expect(err).To(Succeed())
		for range idlePasses {
			Expect(m.Annotate(ctx)).To(Succeed())
			Consistently(ctx, m.State).WithTimeout(passPeriod).Should(match.BeAsBefore(before))
		}
	})

	It("tells while Pods come", env.Check("progressing"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 2
		lift, err := env.LeavePodsPending(ctx, m.Namespace)
		Expect(err).To(Succeed())
		seen, err := watchMemcacheds(ctx, m.Namespace)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(underWay))
		Expect(lift(ctx)).To(Succeed())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(done))
		Expect(neverDegraded(ctx, m, seen)).To(Succeed())
		Expect(changeHistoryLimit(ctx, m)).To(Succeed()) // from here on the generations of the two objects differ
		match.ExpectPods(ctx, m)
		_, err = env.LeavePodsPending(ctx, m.Namespace)
		Expect(err).To(Succeed())
		Expect(m.SetSpec(ctx, "containerPort", m.Port+1)).To(Succeed()) // the Pods of before go on
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(underWay))
	})

	It("tells when somebody has to help", env.Check("degraded"), func(ctx SpecContext) {
		crowded := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx)) // a quota refuses its Pods
		foreign, refused := env.NewMemcached(crowded.Namespace), env.NewMemcached(env.Namespace(ctx))
		_, err := foreign.CreateForeign(ctx)
		Expect(err).To(Succeed())
		Expect(foreign.Create(ctx)).To(Succeed())
		lift, err := env.RefuseDeployments(ctx, refused.Namespace)
		Expect(err).To(Succeed())
		refused.Size = 1
		Expect(refused.Create(ctx)).To(Succeed())
		for _, m := range []env.Memcached{crowded, foreign, refused} {
			Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(stuck))
		}
		Expect(lift(ctx)).To(Succeed())
		match.ExpectPods(ctx, refused)
		Eventually(ctx, env.MemcachedOf(refused)).Should(haveConditions(done).Because("still-degraded"))
	})

	It("writes its status once for each piece of news", env.Check("single-status-update"), func(ctx SpecContext) {
		m := env.NewMemcached(env.NamespaceWithoutPods(ctx))
		_, err := m.CreateForeign(ctx) // so that there is no other news of it than its spec
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(stuck))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		since := env.RequestCount()
		for i := range resizes {
			Expect(m.SetSpec(ctx, "size", int32(1+i%2))).To(Succeed())
			Expect(m.WaitIdle(ctx)).To(Succeed())
		}
		Expect(statusWrites(m, since)).To(match.Because("several-writes", "one write of the status for each change of the size",
			BeNumerically("<=", resizes+spareWrites)))
	})
})
