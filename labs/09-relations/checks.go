// Package relations holds the checks of lab 9: a Memcached has a Service of its own, follows a ConfigMap that is somebody
// else's, and costs those nothing that it does not name.
package relations

import (
	"context"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
)

const (
	// optionsTimeout is the contract's limit for a change of a ConfigMap to be in the Pod template.
	optionsTimeout = 8 * time.Second
	// mendTimeout is the contract's limit for Degraded to go when the ConfigMap is there again.
	mendTimeout = 2 * time.Second
	// retryPause is how long a ConfigMap stays away, beside [stayPeriod], so that an error that was returned is tried again every
	// five seconds by then.
	retryPause = 4200 * time.Millisecond
	// endpointsTimeout is how long Kubernetes may take to list Pods that are available behind a Service.
	endpointsTimeout = 10 * time.Second
	// freedTimeout is the contract's limit for a Memcached to get its own Service once the one in its way is gone.
	freedTimeout = 10 * time.Second
	// stayPeriod is how long something has to stay as it is. Who would change it does so within milliseconds.
	stayPeriod = time.Second
)

const (
	// mends is how often a ConfigMap is spoiled and mended: who polls, or tries again, can be lucky. From quickMend on it is
	// mended right after the pass that has found it.
	mends, quickMend = 5, 3
	// edits is how often something is changed: a pass that runs for another reason may come right after one change.
	edits = 2
	// strangers is how many edits of a ConfigMap that nobody names there are, and fewPasses how many passes they may cost.
	strangers, fewPasses = 100, 5
)

var _ = Describe("Lab 9", env.Lab(9), func() {
	It("routes to its Pods and to no others", env.Check("service-routes", env.First), func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		m, neighbour := env.NewMemcached(namespace), env.NewMemcached(namespace)
		m.Size, neighbour.Size = 2, 1
		neighbour.Name = env.LongName() // with a dot, so that it has no Service
		for _, one := range []env.Memcached{m, neighbour} {
			Expect(one.Create(ctx)).To(Succeed())
		}
		leadsToItsPods(ctx, m)
		match.ExpectPods(ctx, neighbour)
		Eventually(ctx, env.MemcachedOf(neighbour)).Should(match.HaveCondition("Degraded", metav1.ConditionFalse).Because("no-name-for-a-service"))
		m.Port++
		Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.HavePort(m.Port))
		leadsToItsPods(ctx, m)
	})

	It("puts its Service back", env.Check("service-repaired"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Eventually(ctx, serviceOf(m)).Should(havePort(m.Port))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		for _, d := range drifts {
			before, err := service(ctx, m)
			Expect(err).To(Succeed())
			Expect(editService(ctx, m, d)).To(Succeed())
			Eventually(ctx, serviceOf(m)).Should(beRepaired(before))
		}
		Expect(deleteService(ctx, m)).To(Succeed())
		Eventually(ctx, serviceOf(m)).Should(exist().Because("not-recreated"))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		since := env.RequestCount()
		before, err := service(ctx, m)
		Expect(err).To(Succeed())
		for range edits {
			Expect(m.Annotate(ctx)).To(Succeed())
			Expect(m.WaitIdle(ctx)).To(Succeed())
		}
		Expect(writesNoService(ctx, m, before, since)).To(Succeed())
	})

	It("respects a Service of somebody else", env.Check("foreign-service"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 1
		theirs, err := createForeignService(ctx, m, nil)
		Expect(err).To(Succeed())
		lift, err := env.RefuseDeployments(ctx, m.Namespace)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Available", metav1.ConditionFalse).Because("available-without-pods"))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(lift(ctx)).To(Succeed()) // what else is wrong is tried again
		Eventually(ctx, env.DeploymentOf(m)).Should(match.Exist().Because("not-tried-again").KeepCause())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Available", metav1.ConditionTrue).Because("not-available"))
		reports(ctx, m, theirs)
		Expect(deleteService(ctx, m)).To(Succeed())
		Eventually(ctx, serviceOf(m)).WithTimeout(freedTimeout).Should(exist().Because("not-freed"))
		own, err := service(ctx, m)
		Expect(err).To(Succeed())
		other := env.NewMemcached(m.Namespace)
		other.Size = 1
		owner := metav1.NewControllerRef(newOptions(ctx, m.Namespace, env.RandomName()), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		theirs, err = createForeignService(ctx, other, own.Labels, *owner)
		Expect(err).To(Succeed())
		Expect(other.Create(ctx)).To(Succeed())
		reports(ctx, other, theirs)
	})

	It("brings options to the Pods", env.Check("options-arrive"), func(ctx SpecContext) {
		m, options := withOptions(ctx, env.PendingNamespace(ctx))
		for i := range edits {
			Expect(m.WaitIdle(ctx)).To(Succeed())
			before := match.ExpectDeployment(ctx, m)
			Expect(options.set(ctx, options.connections+1+i)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).WithTimeout(optionsTimeout).
				Should(SatisfyAll(match.BeSameAs(before), haveAnotherTemplate(before), tellLimit(options.connections)))
		}
		served, theirs := withOptions(ctx, env.Namespace(ctx))
		match.ExpectPods(ctx, served)
		if env.Run().RealPods {
			areTold(ctx, served, strconv.Itoa(theirs.connections))
		}
	})

	It("goes on while options are missing", env.Check("options-missing"), func(ctx SpecContext) {
		m, options := withOptions(ctx, env.Namespace(ctx))
		match.ExpectPods(ctx, m)
		for i := range mends {
			before := match.ExpectDeployment(ctx, m)
			spoil, mend := options.remove, options.create
			if i == 0 {
				spoil, mend = options.garble, options.correct
			}
			Expect(spoil(ctx)).To(Succeed())
			Eventually(ctx, env.MemcachedOf(m)).Should(beDegraded(options.Name).StopIf(func() error { return staysAsItWas(ctx, m, before) }))
			Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Available", metav1.ConditionTrue).Because("not-available"))
			if i < quickMend {
				Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(stayAsItWas(before))
			}
			if 0 < i && i < quickMend {
				Expect(env.Sleep(ctx, retryPause+time.Duration(env.Rand().IntN(400))*time.Millisecond)).To(Succeed())
			}
			Expect(inTime(isMended(ctx, m, mend))).To(Succeed())
		}
		m = env.NewMemcached(m.Namespace)
		m.Size = 1
		missing := missingOptions(m.Namespace, env.RandomName())
		Expect(m.CreateWith(ctx, map[string]any{"optionsFrom": map[string]any{"name": missing.Name}})).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(beDegraded(missing.Name))
		Expect(missing.create(ctx)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.Exist().Because("not-mended"))
		Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Degraded", metav1.ConditionFalse).Because("not-mended"))
	})

	It("moves those who name it, and no others", env.Check("updates-only-referencing"), func(ctx SpecContext) {
		here, there := env.PendingNamespace(ctx), env.PendingNamespace(ctx)
		first, options := withOptions(ctx, here)
		second, third, another, elsewhere := match.ExpectCreated(ctx, here), match.ExpectCreated(ctx, here), match.ExpectCreated(ctx, here), match.ExpectCreated(ctx, there)
		// Three, because controller-runtime asks twice who is meant: with the object as it was, and as it is. Whoever names one of
		// them in no order would reach two with some luck.
		nameOptions(ctx, second, options)
		nameOptions(ctx, third, options)
		nameOptions(ctx, another, newOptions(ctx, here, env.RandomName()))
		nameOptions(ctx, elsewhere, newOptions(ctx, there, options.Name))
		before := map[env.Memcached]*appsv1.Deployment{}
		for _, m := range []env.Memcached{first, second, third, another, elsewhere} {
			Expect(m.WaitIdle(ctx)).To(Succeed())
			before[m] = match.ExpectDeployment(ctx, m)
		}
		Expect(options.set(ctx, options.connections+1)).To(Succeed())
		for _, m := range []env.Memcached{first, second, third} {
			Eventually(ctx, env.DeploymentOf(m)).WithTimeout(optionsTimeout).Should(haveAnotherTemplate(before[m]).Because("instance-not-updated"))
		}
		for _, m := range []env.Memcached{another, elsewhere} {
			Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(stayAsItWas(before[m]).Because("other-instances-changed"))
		}
	})

	It("spends nothing on ConfigMaps that nobody names", env.Check("ignores-unrelated-configmaps"), func(ctx SpecContext) {
		m, _ := withOptions(ctx, env.NamespaceWithoutPods(ctx))
		stranger := newOptions(ctx, m.Namespace, env.RandomName())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(costNothing(ctx, func() error {
			for i := range strangers {
				if err := stranger.set(ctx, leastConnections+i); err != nil {
					return err
				}
			}
			return env.Sleep(ctx, env.QuietPeriod)
		})).To(Succeed())
	})

	It("leaves the ConfigMap to its owner", env.Check("left-alone"), func(ctx SpecContext) {
		m, options := withOptions(ctx, env.NamespaceWithoutPods(ctx))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(options.isAsItWas(ctx)).To(Succeed())
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.CollectTimeout).Should(match.BeCollected("Deployment"))
		Eventually(ctx, serviceOf(m)).WithTimeout(env.CollectTimeout).Should(match.BeCollected("Service").Because("service-not-collected"))
		Consistently(ctx, options.isAsItWas).WithTimeout(stayPeriod).WithPolling(stayPeriod / 10).Should(Succeed())
	})
})

// leadsToItsPods wants the Service of a Memcached to lead to its Pods, which have to be available for that.
func leadsToItsPods(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Eventually(ctx, serviceOf(m)).Should(havePort(m.Port))
	match.ExpectPods(ctx, m)
	Eventually(ctx, endpointsOf(m)).WithTimeout(endpointsTimeout).Should(haveEndpoints(m).ByKubernetes(endpointsTimeout))
}

// reports wants a Memcached to say that its Service is somebody else's, and that Service as it was made.
func reports(ctx context.Context, m env.Memcached, theirs *corev1.Service) {
	GinkgoHelper()
	untouched := func() error { return isUntouched(ctx, theirs) }
	Eventually(ctx, env.MemcachedOf(m)).Should(beDegraded("service").StopIf(untouched))
	Expect(m.WaitIdle(ctx)).To(Succeed())
	Expect(untouched()).To(Succeed())
}

// withOptions makes a Memcached with one Pod and the ConfigMap that it names, and waits until its Pod template tells the options.
func withOptions(ctx context.Context, namespace string) (env.Memcached, *configMap) {
	GinkgoHelper()
	options := newOptions(ctx, namespace, env.RandomName())
	m := env.NewMemcached(namespace)
	m.Size = 1
	Expect(m.Create(ctx)).To(Succeed())
	nameOptions(ctx, m, options)
	return m, options
}

// nameOptions has a Memcached name a ConfigMap, and waits until its Pod template is another one for that.
func nameOptions(ctx context.Context, m env.Memcached, options *configMap) {
	GinkgoHelper()
	before := match.ExpectDeployment(ctx, m)
	Expect(m.SetSpec(ctx, "optionsFrom", map[string]string{"name": options.Name})).To(Succeed())
	Expect(hasField(ctx, m, options.Name)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(optionsTimeout).Should(haveAnotherTemplate(before))
}
