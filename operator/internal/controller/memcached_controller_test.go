// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

var _ = Describe("Memcached controller", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	// create sends a Memcached with the given name to the API server.
	create := func(ctx SpecContext, name string, size int32) *cachev1alpha1.Memcached {
		GinkgoHelper()
		memcached := &cachev1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       cachev1alpha1.MemcachedSpec{Size: size},
		}
		Expect(k8sClient.Create(ctx, memcached)).To(Succeed())
		return memcached
	}

	It("runs memcached and says when it is available", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 2)
		eventuallyAvailable(ctx, memcached)

		deployment := deploymentOf(ctx, memcached)
		Expect(metav1.IsControlledBy(deployment, memcached)).To(BeTrue(), "the Memcached controls the Deployment")
		Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(2))
		container := deployment.Spec.Template.Spec.Containers[0]
		Expect(container.Image).To(Equal(testImage))
		Expect(container.Args).To(ContainElement("--port=11211"))
		Expect(container.Ports).To(ConsistOf(HaveField("ContainerPort", BeEquivalentTo(11211))))
	}, SpecTimeout(soon))

	It("follows size and port", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)

		change(ctx, memcached, func() { memcached.Spec.Size, memcached.Spec.ContainerPort = 3, 1023 })
		eventuallyAvailable(ctx, memcached)

		deployment := deploymentOf(ctx, memcached)
		Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--port=1023"))
	}, SpecTimeout(soon))

	It("is scaled through its scale, and tells it what there is", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 2)
		eventuallyAvailable(ctx, memcached)

		scale := &autoscalingv1.Scale{}
		Expect(k8sClient.SubResource("scale").Get(ctx, memcached, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(scale.Status.Replicas).To(BeEquivalentTo(2))
		selector, err := metav1.ParseToLabelSelector(scale.Status.Selector)
		Expect(err).NotTo(HaveOccurred())
		Expect(selector.MatchLabels).To(Equal(deploymentOf(ctx, memcached).Spec.Selector.MatchLabels))

		scale.Spec.Replicas = 3
		Expect(k8sClient.SubResource("scale").Update(ctx, memcached, client.WithSubResourceBody(scale))).To(Succeed())
		Eventually(func() *int32 { return deploymentOf(ctx, memcached).Spec.Replicas }).WithContext(ctx).
			Should(HaveValue(BeEquivalentTo(3)))
	}, SpecTimeout(soon))

	It("leads clients to its Pods, and puts its Service back", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 1)
		service := eventuallyService(ctx, memcached, 11211)
		Expect(service.Spec.Selector).To(Equal(deploymentOf(ctx, memcached).Spec.Selector.MatchLabels))
		Expect(metav1.IsControlledBy(service, memcached)).To(BeTrue(), "the Memcached controls the Service")

		changed := service.DeepCopy()
		change(ctx, changed, func() {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, "example.org/note", "mine")
			changed.Spec.Ports[0].Port, changed.Spec.Selector = 80, map[string]string{"app": "other"}
		})
		after := eventuallyService(ctx, memcached, 11211)
		Expect(after.Spec.Selector).To(Equal(service.Spec.Selector))
		Expect(after.UID).To(Equal(service.UID))
		Expect(after.Annotations).To(HaveKeyWithValue("example.org/note", "mine"))

		change(ctx, memcached, func() { memcached.Spec.ContainerPort = 1023 })
		eventuallyService(ctx, memcached, 1023)
	}, SpecTimeout(soon))

	It("leaves someone else's Service alone, and says so", func(ctx SpecContext) {
		theirs := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		Expect(k8sClient.Create(ctx, theirs)).To(Succeed())
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)
		eventuallyDegraded(ctx, memcached, "Service cache is somebody else's")
		Expect(serviceOf(ctx, memcached).ResourceVersion).To(Equal(theirs.ResourceVersion))
	}, SpecTimeout(soon))

	It("follows the ConfigMap that it names, and goes on without it", func(ctx SpecContext) {
		options := func(connections string) *corev1.ConfigMap {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "options"},
				Data:       map[string]string{"connections": connections},
			}
		}
		Expect(k8sClient.Create(ctx, options("300"))).To(Succeed())
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)
		args := func() []string { return containerOf(deploymentOf(ctx, memcached)).Args }
		change(ctx, memcached, func() { memcached.Spec.OptionsFrom.Name = "options" })
		Eventually(args).WithContext(ctx).Should(ContainElement("--conn-limit=300"))
		Expect(k8sClient.Update(ctx, options("400"))).To(Succeed())
		Eventually(args).WithContext(ctx).Should(ContainElement("--conn-limit=400"))

		Expect(k8sClient.Update(ctx, options("many"))).To(Succeed())
		eventuallyDegraded(ctx, memcached, `ConfigMap options has "many"`)
		Expect(k8sClient.Delete(ctx, options(""))).To(Succeed())
		eventuallyDegraded(ctx, memcached, "there is no ConfigMap options")
		Expect(args()).To(ContainElement("--conn-limit=400"))
		eventuallyAvailable(ctx, memcached)

		Expect(k8sClient.Create(ctx, options("500"))).To(Succeed())
		Eventually(args).WithContext(ctx).Should(ContainElement("--conn-limit=500"))
		eventuallyDegraded(ctx, memcached, "")
	}, SpecTimeout(soon))

	It("keeps two Memcacheds apart", func(ctx SpecContext) {
		first, second := create(ctx, "one", 1), create(ctx, strings.Repeat("a-long-name-", 8)+"z", 2)
		eventuallyAvailable(ctx, first)
		eventuallyAvailable(ctx, second)

		Expect(podsOf(ctx, deploymentOf(ctx, first))).To(HaveLen(1))
		Expect(podsOf(ctx, deploymentOf(ctx, second))).To(HaveLen(2))
	}, SpecTimeout(soon))

	It("brings back a Deployment that was deleted", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)

		deleted := deploymentOf(ctx, memcached)
		Expect(k8sClient.Delete(ctx, deleted)).To(Succeed())
		Eventually(func(g Gomega) {
			deployment := &appsv1.Deployment{}
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)).To(Succeed())
			g.Expect(deployment.UID).NotTo(Equal(deleted.UID))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(soon))

	DescribeTable("puts back what was changed in the Deployment, and only that",
		func(ctx SpecContext, tamper func(*appsv1.Deployment)) {
			memcached := create(ctx, "cache", 1)
			eventuallyAvailable(ctx, memcached)
			before := deploymentOf(ctx, memcached)

			deployment := before.DeepCopy()
			change(ctx, deployment, func() {
				metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "example.org/note", "mine")
				metav1.SetMetaDataLabel(&deployment.ObjectMeta, "example.org/team", "mine")
				tamper(deployment)
			})

			Eventually(func(g Gomega) {
				after := deploymentOf(ctx, memcached)
				g.Expect(after.Spec).To(Equal(before.Spec))
				g.Expect(after.Annotations).To(HaveKeyWithValue("example.org/note", "mine"))
				g.Expect(after.Annotations).To(HaveKey("deployment.kubernetes.io/revision"))
				g.Expect(after.Labels).To(HaveKeyWithValue("example.org/team", "mine"))
			}).WithContext(ctx).Should(Succeed())
		},
		Entry("replicas", SpecTimeout(soon), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) }),
		Entry("image", SpecTimeout(soon), func(d *appsv1.Deployment) { containerOf(d).Image = "example.org/other:1" }),
		Entry("port", SpecTimeout(soon), func(d *appsv1.Deployment) { containerOf(d).Ports[0].ContainerPort = 4 }),
		Entry("arguments", SpecTimeout(soon), func(d *appsv1.Deployment) { containerOf(d).Args = []string{"--port=4"} }),
		Entry("name of the container", SpecTimeout(soon), func(d *appsv1.Deployment) { containerOf(d).Name = "other" }),
		Entry("a second container", SpecTimeout(soon), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "other", Image: "example.org/other:1"})
		}),
		Entry("security context", SpecTimeout(soon), func(d *appsv1.Deployment) {
			containerOf(d).SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			d.Spec.Template.Spec.SecurityContext = nil
		}),
	)

	It("keeps a restart that somebody asked for", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)

		deployment := deploymentOf(ctx, memcached)
		change(ctx, deployment, func() { // as kubectl rollout restart does
			metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", "now")
		})
		Consistently(func() map[string]string {
			return deploymentOf(ctx, memcached).Spec.Template.Annotations
		}).WithContext(ctx).Should(HaveKey("kubectl.kubernetes.io/restartedAt"))
	}, SpecTimeout(soon))

	It("changes nothing when there is nothing to do", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)
		deployment := deploymentOf(ctx, memcached)

		change(ctx, memcached, func() { metav1.SetMetaDataAnnotation(&memcached.ObjectMeta, "example.org/note", "hello") })

		Consistently(func(g Gomega) {
			now := &cachev1alpha1.Memcached{}
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), now)).To(Succeed())
			g.Expect(now.ResourceVersion).To(Equal(memcached.ResourceVersion))
			g.Expect(deploymentOf(ctx, memcached).ResourceVersion).To(Equal(deployment.ResourceVersion))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(soon))

	It("says in the words of the deployment controller why Pods are missing", func(ctx SpecContext) {
		Expect(k8sClient.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-pod"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
		})).To(Succeed())
		memcached := create(ctx, "cache", 2)

		eventuallyCondition(ctx, memcached, metav1.ConditionFalse, reasonBlocked, "exceeded quota: one-pod")
		eventuallyWarning(ctx, memcached, reasonBlocked)

		change(ctx, memcached, func() { memcached.Spec.Size = 1 })
		eventuallyAvailable(ctx, memcached)
	}, SpecTimeout(soon))

	It("leaves someone else's Deployment alone, says so once, and takes its place when it goes", func(ctx SpecContext) {
		foreign := foreignDeployment(ctx, namespace, "cache")
		memcached := create(ctx, "cache", 1)

		eventuallyCondition(ctx, memcached, metav1.ConditionFalse, reasonForeign, "ConfigMap owner")
		eventuallyWarning(ctx, memcached, reasonForeign)
		Consistently(func(g Gomega) {
			g.Expect(deploymentOf(ctx, memcached).ResourceVersion).To(Equal(foreign.ResourceVersion))
			g.Expect(eventsOf(ctx, memcached)).To(ConsistOf(
				"Warning DeploymentConflict the name is taken: Deployment cache is controlled by ConfigMap owner"))
		}).WithContext(ctx).Should(Succeed())

		Expect(k8sClient.Delete(ctx, foreign)).To(Succeed())
		eventuallyAvailable(ctx, memcached)
	}, SpecTimeout(soon))

	It("leaves an orphaned Deployment alone, and takes its place when it goes", func(ctx SpecContext) {
		first := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, first)
		Expect(k8sClient.Delete(ctx, first, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		eventuallyGone(ctx, first)

		second := create(ctx, "cache", 2)
		eventuallyCondition(ctx, second, metav1.ConditionFalse, reasonForeign, "Deployment cache has no controller")
		orphan := deploymentOf(ctx, second)
		Expect(k8sClient.Delete(ctx, orphan)).To(Succeed())
		eventuallyAvailable(ctx, second)
		Expect(metav1.IsControlledBy(deploymentOf(ctx, second), second)).To(BeTrue())
	}, SpecTimeout(soon))

	It("gives a new Memcached a Deployment of its own, whoever had the name before", func(ctx SpecContext) {
		first := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, first)
		Expect(k8sClient.Delete(ctx, first)).To(Succeed())
		eventuallyGone(ctx, first.DeepCopy())

		second := create(ctx, "cache", 2) // while the garbage collector is still at work
		eventuallyAvailable(ctx, second)
		Expect(metav1.IsControlledBy(deploymentOf(ctx, second), second)).To(BeTrue())
	}, SpecTimeout(soon))

	It("tells about the creation and every scaling once", func(ctx SpecContext) {
		memcached := create(ctx, "cache", 1)
		eventuallyAvailable(ctx, memcached)
		for _, size := range []int32{3, 1} {
			change(ctx, memcached, func() { memcached.Spec.Size = size })
			eventuallyAvailable(ctx, memcached)
		}
		Eventually(func() []string { return eventsOf(ctx, memcached) }).WithContext(ctx).Should(HaveLen(3))

		for _, note := range []string{"a", "b", "c"} {
			change(ctx, memcached, func() { metav1.SetMetaDataAnnotation(&memcached.ObjectMeta, "example.org/note", note) })
		}
		Consistently(func() []string { return eventsOf(ctx, memcached) }).WithContext(ctx).Should(ConsistOf(
			"Normal Created Created Deployment cache of size 1",
			"Normal Scaled Scaled Deployment cache from 1 to 3",
			"Normal Scaled Scaled Deployment cache from 3 to 1",
		))
	}, SpecTimeout(soon))

	DescribeTable("does not stand in the way of the garbage collector",
		func(ctx SpecContext, policy metav1.DeletionPropagation) {
			memcached := create(ctx, "cache", 1)
			eventuallyAvailable(ctx, memcached)

			Expect(k8sClient.Delete(ctx, memcached, client.PropagationPolicy(policy))).To(Succeed())
			eventuallyGone(ctx, memcached.DeepCopy())
			// News of the Deployment may come before news of the Memcached. Then one more
			// is created, which the garbage collector takes, too; but not again and again.
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"}}
			Eventually(func() bool {
				return apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(deployment), deployment))
			}).WithContext(ctx).MustPassRepeatedly(stays).Should(BeTrue(), "the Deployment is gone, and stays so")
			Expect(len(eventsOf(ctx, memcached))).To(BeNumerically("<=", 2), "it was created once, or twice by bad luck")
		},
		Entry("in a background deletion", SpecTimeout(soon), metav1.DeletePropagationBackground),
		Entry("in a foreground deletion", SpecTimeout(soon), metav1.DeletePropagationForeground),
	)
})

// change applies mutate to the newest version of obj and sends it, until nobody
// has been faster.
func change(ctx context.Context, obj client.Object, mutate func()) {
	GinkgoHelper()
	Eventually(func() error {
		if err := k8sClient.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		mutate()
		return k8sClient.Update(ctx, obj)
	}).WithContext(ctx).Should(Succeed())
}

func deploymentOf(ctx context.Context, memcached *cachev1alpha1.Memcached) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)).To(Succeed())
	return deployment
}

func serviceOf(ctx context.Context, memcached *cachev1alpha1.Memcached) *corev1.Service {
	GinkgoHelper()
	service := &corev1.Service{}
	Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), service)).To(Succeed())
	return service
}

// eventuallyService waits until the Service has the port, and returns it.
func eventuallyService(ctx context.Context, memcached *cachev1alpha1.Memcached, port int32) *corev1.Service {
	GinkgoHelper()
	service := &corev1.Service{}
	Eventually(func(g Gomega) {
		g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), service)).To(Succeed())
		g.Expect(service.Spec.Ports).To(ConsistOf(HaveField("Port", port)))
		g.Expect(service.Spec.Ports[0].TargetPort.IntVal).To(Equal(port))
	}).WithContext(ctx).Should(Succeed())
	return service
}

// eventuallyDegraded waits until the condition Degraded tells of the trouble; "" is none.
func eventuallyDegraded(ctx context.Context, memcached *cachev1alpha1.Memcached, trouble string) {
	GinkgoHelper()
	status := metav1.ConditionTrue
	if trouble == "" {
		status = metav1.ConditionFalse
	}
	Eventually(func(g Gomega) {
		g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
		condition := meta.FindStatusCondition(memcached.Status.Conditions, conditionDegraded)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Status).To(Equal(status), condition.Message)
		g.Expect(condition.Message).To(ContainSubstring(trouble))
	}).WithContext(ctx).Should(Succeed())
}

func containerOf(deployment *appsv1.Deployment) *corev1.Container {
	return &deployment.Spec.Template.Spec.Containers[0]
}

// podsOf returns the Pods that the Deployment's selector picks.
func podsOf(ctx context.Context, deployment *appsv1.Deployment) []corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(k8sClient.List(ctx, pods, client.InNamespace(deployment.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels))).To(Succeed())
	return pods.Items
}

// foreignDeployment creates a Deployment that a ConfigMap controls.
func foreignDeployment(ctx context.Context, namespace, name string) *appsv1.Deployment {
	GinkgoHelper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	Expect(k8sClient.Create(ctx, owner)).To(Succeed())

	memcached := &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       cachev1alpha1.MemcachedSpec{Size: 1, ContainerPort: 11211},
	}
	deployment := newDeployment(memcached)
	shape(deployment, memcached, "example.org/other:1")
	deployment.Spec.Replicas = new(int32(0)) // nobody writes its status any more
	deployment.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
	}
	Expect(k8sClient.Create(ctx, deployment)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.Conditions).To(ContainElement(HaveField("Reason", "NewReplicaSetAvailable")))
	}).WithContext(ctx).Should(Succeed(), "the deployment controller has settled")
	return deployment
}

func eventuallyAvailable(ctx context.Context, memcached *cachev1alpha1.Memcached) {
	GinkgoHelper()
	eventuallyCondition(ctx, memcached, metav1.ConditionTrue, reasonAvailable, "")
}

// eventuallyCondition waits until the condition Available is as told, for the
// newest spec, and leaves the newest version in memcached.
func eventuallyCondition(ctx context.Context, memcached *cachev1alpha1.Memcached, status metav1.ConditionStatus, reason, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
		condition := meta.FindStatusCondition(memcached.Status.Conditions, conditionAvailable)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.ObservedGeneration).To(Equal(memcached.Generation))
		g.Expect(string(condition.Status)+" "+condition.Reason).To(Equal(string(status)+" "+reason), condition.Message)
		g.Expect(condition.Message).To(ContainSubstring(message))
	}).WithContext(ctx).Should(Succeed())
}

func eventuallyGone(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Eventually(func() error {
		return k8sClient.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}).WithContext(ctx).Should(Satisfy(apierrors.IsNotFound))
}

func eventuallyWarning(ctx context.Context, memcached *cachev1alpha1.Memcached, reason string) {
	GinkgoHelper()
	Eventually(func() []string { return eventsOf(ctx, memcached) }).WithContext(ctx).
		Should(ContainElement(HavePrefix("Warning " + reason)))
}

// eventsOf returns the events on memcached, one line each. A repeated event
// shows as "again".
func eventsOf(ctx context.Context, memcached *cachev1alpha1.Memcached) (lines []string) {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(k8sClient.List(ctx, list, client.InNamespace(memcached.Namespace))).To(Succeed())
	for _, event := range list.Items {
		if event.Regarding.UID != memcached.UID {
			continue
		}
		line := event.Type + " " + event.Reason + " " + event.Note
		if event.Series != nil {
			line += " again"
		}
		lines = append(lines, line)
	}
	return lines
}
