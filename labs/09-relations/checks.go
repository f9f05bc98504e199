// Package relations holds the checks of lab 9: a Memcached has a Service of its own, follows a ConfigMap that is somebody
// else's, and costs those nothing that it does not name.
package relations

import (
	"context"
	"errors"
	"fmt"
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
	// endpointsTimeout is how long Kubernetes may take to list Pods that are available behind a Service.
	endpointsTimeout = 10 * time.Second
	// freedTimeout is the contract's limit for a Memcached to get its own Service once the one in its way is gone.
	freedTimeout = 10 * time.Second
	// stayPeriod is how long something has to stay as it is. Who would change it does so within milliseconds.
	stayPeriod = time.Second
	// quietPeriod is how long a manager is listened to after edits that are none of its business.
	quietPeriod = 3 * time.Second
	// strangers is how many edits there are of each object that is none of a Memcached's business, and fewPasses and fewRequests what they may cost: the
	// manager still works off what other checks have left, and an operator that applies sends several requests in each pass.
	strangers, fewPasses, fewRequests = 100, 10, 50
)

var _ = Describe("Lab 9", env.Lab(9), func() {
	It("routes to its Pods and to no others", env.Check("service-routes"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		m, neighbour := env.NewMemcached(namespace, 2), env.NewMemcached(namespace, 1)
		neighbour.Name += "." + neighbour.Name // so that it has no Service
		Expect(m.Create(ctx)).To(Succeed())
		Expect(neighbour.Create(ctx)).To(Succeed())
		Eventually(ctx, serviceOf(m)).Should(SatisfyAll(havePort(m.Port), match.Because("not-headless",
			"a headless Service, whose name resolves to all Pods", HaveField("Spec.ClusterIP", corev1.ClusterIPNone))))
		match.ExpectPods(ctx, neighbour)
		Eventually(ctx, env.MemcachedOf(neighbour)).
			Should(match.HaveCondition("Degraded", metav1.ConditionFalse).Because("no-name-for-a-service"))
		m.Port++
		Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.BeTold("port", m.Port))
		Eventually(ctx, serviceOf(m)).Should(havePort(m.Port))
		match.ExpectPods(ctx, m)
		Eventually(ctx, endpointsOf(m)).WithTimeout(endpointsTimeout).Should(haveEndpoints(m).ByKubernetes(endpointsTimeout))
	})

	It("puts its Service back", env.Check("service-repaired"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Eventually(ctx, serviceOf(m)).Should(havePort(m.Port))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		before, err := service(ctx, m)
		Expect(err).To(Succeed())
		for _, edit := range edits {
			Expect(editService(ctx, m, edit)).To(Succeed())
			Eventually(ctx, serviceOf(m)).Should(beRepaired(before))
			Expect(service(ctx, m)).To(beTheSame(before))
		}
		Expect(env.Admin().Delete(ctx, before)).To(Succeed())
		Eventually(ctx, serviceOf(m)).Should(exist().Because("not-recreated"))
		Expect(m.WaitIdle(ctx)).To(Succeed())
		since := env.RequestCount()
		Expect(m.Annotate(ctx)).To(Succeed())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(writesNoService(ctx, m, since)).To(Succeed())
	})

	It("respects a Service of somebody else", env.Check("foreign-service"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx), 1)
		theirs, err := createForeignService(ctx, m)
		Expect(err).To(Succeed())
		lift := env.RefuseDeployments(ctx, m.Namespace)
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Degraded", metav1.ConditionTrue).Because("not-degraded"))
		Expect(isUntouched(ctx, theirs)).To(Succeed())
		Expect(lift(ctx)).To(Succeed()) // what else is wrong is tried again
		Eventually(ctx, env.DeploymentOf(m)).Should(match.Exist().Because("not-tried-again").KeepCause())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Available", metav1.ConditionTrue).Because("not-available"))
		Eventually(ctx, env.MemcachedOf(m)).Should(beDegraded("service"))
		Expect(isUntouched(ctx, theirs)).To(Succeed())
		Expect(m.WaitIdle(ctx)).To(Succeed()) // a pass after the operator's own report must not be the one that creates
		Expect(env.Admin().Delete(ctx, theirs)).To(Succeed())
		Eventually(ctx, serviceOf(m)).WithTimeout(freedTimeout).Should(exist().Because("not-freed").ByKubernetes(freedTimeout))
	})

	It("brings options to the Pods", env.Check("options-arrive"), func(ctx SpecContext) {
		options := newOptions(ctx, env.Namespace(ctx, env.LeavePodsPending), env.RandomName())
		m := withOptions(ctx, options)
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(write(ctx, options, randomConnections())).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(optionsTimeout).Should(tellLimit(options).ByKubernetes(optionsTimeout))
		served := newOptions(ctx, env.Namespace(ctx), env.RandomName())
		m = withOptions(ctx, served)
		match.ExpectPods(ctx, m)
		if env.Run().RealPods {
			match.ExpectAnswers(ctx, m, "stats settings", haveLimit(served))
		}
	})

	It("goes on while options are missing", env.Check("options-missing"), func(ctx SpecContext) {
		options := newOptions(ctx, env.Namespace(ctx), env.RandomName())
		m := withOptions(ctx, options)
		match.ExpectPods(ctx, m)
		garble := func(ctx context.Context, options *corev1.ConfigMap) error { return write(ctx, options, "many") }
		for _, spoil := range []func(context.Context, *corev1.ConfigMap) error{garble, remove} {
			before := match.ExpectDeployment(ctx, m)
			Expect(spoil(ctx, options)).To(Succeed())
			Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(stayAsItWas(before))
			Eventually(ctx, env.MemcachedOf(m)).Should(beDegraded(options.Name))
			Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Available", metav1.ConditionTrue).Because("not-available"))
			Expect(m.WaitIdle(ctx)).To(Succeed()) // a pass after the operator's own report must not be the one that reads it
			Expect(write(ctx, options, randomConnections())).To(Succeed())
			Eventually(ctx, env.MemcachedOf(m)).WithTimeout(mendTimeout).
				Should(match.HaveCondition("Degraded", metav1.ConditionFalse).Because("not-mended"))
		}
		Expect(remove(ctx, options)).To(Succeed())
		late := create(ctx, options)
		Eventually(ctx, env.MemcachedOf(late)).Should(beDegraded(options.Name))
		Expect(late.WaitIdle(ctx)).To(Succeed())
		Expect(write(ctx, options, randomConnections())).To(Succeed())
		Eventually(ctx, env.DeploymentOf(late)).Should(match.Exist().Because("not-mended"))
		Eventually(ctx, env.MemcachedOf(late)).Should(match.HaveCondition("Degraded", metav1.ConditionFalse).Because("not-mended"))
	})

	It("moves those who name it, and no others", env.Check("updates-only-referencing"), func(ctx SpecContext) {
		here, there := env.Namespace(ctx, env.LeavePodsPending), env.Namespace(ctx, env.LeavePodsPending)
		options := newOptions(ctx, here, env.RandomName())
		// Three, because controller-runtime asks twice who is meant: with the object as it was, and as it is.
		users := []env.Memcached{withOptions(ctx, options), withOptions(ctx, options), withOptions(ctx, options)}
		others := map[env.Memcached]*appsv1.Deployment{}
		for _, m := range []env.Memcached{
			withOptions(ctx, newOptions(ctx, here, env.RandomName())),
			withOptions(ctx, newOptions(ctx, there, options.Name)),
		} {
			Expect(m.WaitIdle(ctx)).To(Succeed())
			others[m] = match.ExpectDeployment(ctx, m)
		}
		Expect(write(ctx, options, randomConnections())).To(Succeed())
		for _, m := range users {
			Eventually(ctx, env.DeploymentOf(m)).WithTimeout(optionsTimeout).
				Should(tellLimit(options).Because("instance-not-updated").ByKubernetes(optionsTimeout))
		}
		Expect(env.Sleep(ctx, stayPeriod)).To(Succeed())
		for m, before := range others {
			Expect(match.ExpectDeployment(ctx, m)).To(stayAsItWas(before).Because("other-instances-changed"))
		}
	})

	It("spends nothing on strangers' objects", env.Check("ignores-unrelated-objects"), func(ctx SpecContext) {
		m := withOptions(ctx, newOptions(ctx, env.Namespace(ctx, env.Quota(0)), env.RandomName()))
		stranger, nobody := newOptions(ctx, m.Namespace, env.RandomName()), env.NewMemcached(m.Namespace) // which is never created
		Expect(nobody.CreateForeign(ctx)).Error().To(Succeed())
		Expect(createForeignService(ctx, nobody)).Error().To(Succeed())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		since := env.RequestCount()
		made, err := env.Manager().PassesDuring(ctx, func() error {
			for i := range strangers {
				if err := errors.Join(write(ctx, stranger, leastConnections+i),
					nobody.EditDeployment(ctx, func(d *appsv1.Deployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, somebodys, fmt.Sprint(i)) }),
					editService(ctx, nobody, func(s *corev1.Service) { s.Spec.Ports[0].Port = int32(1 + i) })); err != nil {
					return err
				}
			}
			return env.Sleep(ctx, quietPeriod)
		})
		Expect(err).To(Succeed())
		Expect(made.All).To(match.Because("passes-for-strangers",
			"no pass for a ConfigMap, a Deployment or a Service that no Memcached has to do with", BeNumerically("<=", fewPasses)))
		Expect(env.RequestCount() - since).To(match.Because("passes-for-strangers",
			"no request for a ConfigMap, a Deployment or a Service that no Memcached has to do with", BeNumerically("<=", fewRequests)))
	})

	It("leaves the ConfigMap to its owner", env.Check("left-alone"), func(ctx SpecContext) {
		options := newOptions(ctx, env.Namespace(ctx, env.Quota(0)), env.RandomName())
		m := withOptions(ctx, options)
		Eventually(ctx, serviceOf(m)).Should(exist())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		Expect(read(ctx, options)).To(match.Because("owned", "the ConfigMap has no owner", HaveField("OwnerReferences", BeEmpty())))
		Expect(read(ctx, options)).To(match.Because("configmap-changed", "the ConfigMap stays as its user made it",
			HaveField("ResourceVersion", options.ResourceVersion)))
		obj, err := m.Get(ctx)
		Expect(err).To(Succeed())
		Expect(service(ctx, m)).To(match.Because("service-not-owned", "the Service has the Memcached for an owner",
			HaveField("OwnerReferences", ContainElement(HaveField("UID", obj.GetUID())))))
	})
})
