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

// admitted is how many of a Memcached's Pods a quota admits where what is observed must differ from what is wanted.
const admitted = 2

// resizes is how often the size is changed for [onceForEach].
const resizes = 5

// maxSize is the greatest size that a Memcached may have.
const maxSize = 5

// autoscaleTimeout is how long an autoscaler may take. It looks every two seconds, and asks which kinds there are every
// thirty.
const autoscaleTimeout = 45 * time.Second

var _ = Describe("Lab 8", env.Lab(8), func() {
	It("tells in its scale what is wanted and what there is", env.Check("scale-reads", env.First), func(ctx SpecContext) {
		Expect(servesScale(ctx)).To(Succeed())
		namespace := env.PendingNamespace(ctx)
		Expect(env.Quota(ctx, namespace, admitted)).To(Succeed())
		m := env.NewMemcached(namespace)
		m.Size = admitted + 2
		Expect(m.Create(ctx)).To(Succeed())
		d := match.ExpectDeployment(ctx, m)
		Eventually(ctx, scaleOf(m)).Should(wantSize(m.Size))
		Eventually(ctx, scaleOf(m)).Should(haveObserved(admitted).ByKubernetes(env.PodsTimeoutAfterFailure))
		neighbour := env.NewMemcached(namespace)
		Expect(neighbour.Create(ctx)).To(Succeed())
		other := match.ExpectDeployment(ctx, neighbour)
		Eventually(ctx, scaleOf(m)).Should(SatisfyAll(haveSelector(), pickTheirOwn(d, other)))
	})

	It("is scaled through its scale", env.Check("scale-writes"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		for _, size := range []int32{maxSize, 1} {
			Expect(rescale(ctx, m, size)).To(Succeed())
			Eventually(ctx, env.MemcachedOf(m)).Should(askFor("wrong-specpath", "the scale", size))
			Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(size).Because("not-followed"))
		}
		Expect(refusesToScale(ctx, m, maxSize+1)).To(Succeed())
	})

	It("can be scaled by an autoscaler", env.Check("hpa-scales"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Expect(m.SetSpec(ctx, "size", 1)).To(Succeed())
		Eventually(ctx, scaleOf(m)).Should(haveSelector()) // an autoscaler that finds none says so until it looks again
		Expect(autoscale(ctx, m, 3, maxSize)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).WithTimeout(autoscaleTimeout).Should(beScaled(ctx, m, 3).ByKubernetes(autoscaleTimeout))
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(3).Because("not-followed"))
		Eventually(ctx, autoscalerOf(m)).WithTimeout(autoscaleTimeout).Should(findThePods().ByKubernetes(autoscaleTimeout))
		Consistently(ctx, env.MemcachedOf(m)).WithTimeout(env.QuietPeriod).Should(askFor("written-back", "an autoscaler", 3))
	})

	It("leaves the size to its users", env.Check("does-not-own-spec"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Expect(rescale(ctx, m, 1)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(1).Because("not-followed"))
		Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
		Expect(m.Annotate(ctx)).To(Succeed())
		Expect(scaleDeployment(ctx, m, maxSize)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(1).Because("not-repaired"))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(m.IsSpecUntouched(ctx)).To(Succeed())
	})

	It("tells when it is done", env.Check("rollout-complete"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 2
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(done))
		Expect(restsWhenAsked(ctx, m)).To(Succeed())
	})

	It("tells while Pods come", env.Check("progressing"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 2
		lift, err := env.LeavePodsPending(ctx, m.Namespace)
		Expect(err).To(Succeed())
		wasAlarmed, err := watchForAlarm(ctx, m)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(underWay))
		Expect(lift(ctx)).To(Succeed())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(done))
		Expect(wasAlarmed()).To(Succeed())
		Expect(scaleDeployment(ctx, m, 1)).To(Succeed()) // from here on the generations of the two objects differ
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(m.Size).Because("not-repaired"))
		Expect(m.WaitIdle(ctx)).To(Succeed()) // the deployment controller counts the Pods of before for a moment
		match.ExpectPods(ctx, m)
		_, err = env.LeavePodsPending(ctx, m.Namespace)
		Expect(err).To(Succeed())
		m.Port++
		Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed()) // the Pods of before go on
		Eventually(ctx, env.MemcachedOf(m)).Should(haveConditions(underWay))
		Expect(m.WaitIdle(ctx)).To(Succeed()) // a new Pod waits beside the old ones
		Eventually(ctx, scaleOf(m)).Should(countPodsOfBoth(ctx, m))
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
		Expect(onceForEach(m, since, resizes)).To(Succeed())
	})
})
