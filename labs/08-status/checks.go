// Package status holds the checks of lab 8: other programs can use the status of a Memcached. They scale it through the
// scale subresource, and learn from its conditions whether to wait or to help.
package status

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

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
	It("tells in its scale what is wanted and what there is", env.Check("scale-reads"), func(ctx SpecContext) {
		Expect(servesScale(ctx)).To(Succeed())
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.LeavePodsPending, env.Quota(admitted)), admitted+2)
		d := match.ExpectDeployment(ctx, m)
		Eventually(ctx, env.DeploymentOf(m)).Should(match.Because("not-observed", "Kubernetes makes the Pods that a quota admits",
			HaveField("Status.Replicas", BeEquivalentTo(admitted))).ByKubernetes(env.RetryTimeout))
		Eventually(ctx, scaleOf(m)).Should(haveObserved(admitted))
		empty := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		other := match.ExpectDeployment(ctx, empty)
		Eventually(ctx, scaleOf(m)).Should(pickPods(d, other))
		Eventually(ctx, scaleOf(empty)).Should(pickPods(other, d))
	})

	It("is scaled through its scale", env.Check("scale-writes"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		for _, size := range []int32{maxSize, 1} {
			Expect(rescale(ctx, m, size)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(size).Because("not-followed"))
		}
		Expect(refusesToScale(ctx, m, maxSize+1)).To(Succeed())
	})

	It("leaves the size to its users", env.Check("does-not-own-spec"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Expect(rescale(ctx, m, 1)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(1).Because("not-followed"))
		Expect(m.Annotate(ctx)).To(Succeed())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(m.IsSpecUntouched(ctx)).To(Succeed())
	})

	It("tells when it is done", env.Check("rollout-complete"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx), 2)
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(done))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		before, err := m.Get(ctx)
		Expect(err).To(Succeed())
		for range idlePasses {
			Expect(m.Annotate(ctx)).To(Succeed())
			Consistently(ctx, env.MemcachedOf(m)).WithTimeout(passPeriod).Should(haveTheStatusOf(before))
		}
	})

	It("tells while Pods come", env.Check("progressing"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx), 2)
		lift := env.LeavePodsPending(ctx, m.Namespace)
		seen, err := watchMemcacheds(ctx, m.Namespace)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(underWay))
		Expect(lift(ctx)).To(Succeed())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(done))
		Expect(neverDegraded(ctx, m, seen)).To(Succeed())
		Expect(m.EditDeployment(ctx, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(7)) })).To(Succeed())
		// From here on the generations of the two objects differ.
		match.ExpectPods(ctx, m)
		env.LeavePodsPending(ctx, m.Namespace)
		Expect(m.SetSpec(ctx, "containerPort", m.Port+1)).To(Succeed()) // the Pods of before go on
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(underWay))
	})

	It("tells when somebody has to help", env.Check("degraded"), func(ctx SpecContext) {
		crowded := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0))) // a quota refuses its Pods
		foreign, refused := env.NewMemcached(crowded.Namespace), env.NewMemcached(env.Namespace(ctx), 1)
		Expect(foreign.CreateForeign(ctx)).Error().To(Succeed())
		Expect(foreign.Create(ctx)).To(Succeed())
		lift := env.RefuseDeployments(ctx, refused.Namespace)
		Expect(refused.Create(ctx)).To(Succeed())
		for _, m := range []env.Memcached{crowded, foreign, refused} {
			Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(stuck))
		}
		Expect(lift(ctx)).To(Succeed())
		match.ExpectPods(ctx, refused)
		Eventually(ctx, env.MemcachedOf(refused)).Should(haveConditions(done).Because("still-degraded"))
		serving := match.ExpectCreated(ctx, refused.Namespace, 1)
		match.ExpectPods(ctx, serving)
		env.Quota(2)(ctx, refused.Namespace)                                        // the Pods that are there, and no others
		Expect(serving.SetSpec(ctx, "containerPort", serving.Port+1)).To(Succeed()) // the Pod of before goes on
		Eventually(ctx, env.MemcachedOf(serving)).Should(haveConditions(stuckRollout))
		Eventually(ctx, env.EventsOf(serving)).Should(match.HaveWarning("quota"))
	})

	It("writes its status once for each piece of news", env.Check("single-status-update"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
		Expect(m.CreateForeign(ctx)).Error().To(Succeed()) // so that there is no other news of it than its spec
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
