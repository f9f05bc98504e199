/*
SPDX-License-Identifier: Apache-2.0
*/

package v1alpha1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

var _ = Describe("Memcached Webhook", func() {
	newMemcached := func(spec cachev1alpha1.MemcachedSpec) *cachev1alpha1.Memcached {
		return &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{GenerateName: "cache-", Namespace: "default"}, Spec: spec}
	}

	annotate := func(memory string) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		patch := `{"metadata":{"annotations":{"cache.example.com/memory":` + memory + `}}}`
		Expect(k8sClient.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}

	AfterEach(func() { annotate("null") })

	Context("When creating Memcached under Defaulting Webhook", func() {
		It("Should give it 64 MiB", func() {
			memcached := newMemcached(cachev1alpha1.MemcachedSpec{})
			Expect(k8sClient.Create(ctx, memcached)).To(Succeed())
			Expect(memcached.Spec.Memory).To(BeEquivalentTo(64))
		})

		It("Should give it what the namespace asks for", func() {
			annotate(`"128"`)
			memcached := newMemcached(cachev1alpha1.MemcachedSpec{})
			Expect(k8sClient.Create(ctx, memcached)).To(Succeed())
			Expect(memcached.Spec.Memory).To(BeEquivalentTo(128))
			memcached = newMemcached(cachev1alpha1.MemcachedSpec{Memory: 32})
			Expect(k8sClient.Create(ctx, memcached)).To(Succeed())
			Expect(memcached.Spec.Memory).To(BeEquivalentTo(32))
		})

		It("Should deny what is no number", func() {
			annotate(`"plenty"`)
			Expect(k8sClient.Create(ctx, newMemcached(cachev1alpha1.MemcachedSpec{}))).To(MatchError(ContainSubstring("plenty")))
		})
	})

	Context("When creating or updating Memcached under Validating Webhook", func() {
		It("Should deny a name that a foreign Deployment has, and nothing that exists", func() {
			memcached := newMemcached(cachev1alpha1.MemcachedSpec{MaxItemSize: 32})
			memcached.GenerateName, memcached.Name = "", "taken"
			labels := map[string]string{"app": "foreign"}
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: "default"},
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: "foreign"}}},
					},
				},
			}
			Expect(k8sClient.Create(ctx, memcached.DeepCopy())).To(Succeed())
			Expect(k8sClient.Create(ctx, deployment)).To(Succeed())

			annotate(`"2"`)
			Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
			memcached.Spec.Size = 2
			Expect(k8sClient.Update(ctx, memcached)).To(Succeed())
			Expect(k8sClient.Delete(ctx, memcached)).To(Succeed())

			memcached.ResourceVersion = ""
			Expect(k8sClient.Create(ctx, memcached)).To(MatchError(ContainSubstring("taken")))
		})

		It("Should warn of a ConfigMap that is missing", func() {
			validator := MemcachedValidator{Reader: k8sClient}
			memcached := newMemcached(cachev1alpha1.MemcachedSpec{OptionsFrom: cachev1alpha1.OptionsReference{Name: "options"}})
			memcached.Name = "warned"
			Expect(validator.ValidateCreate(ctx, memcached)).To(ContainElement(ContainSubstring("options")))
			Expect(validator.ValidateUpdate(ctx, nil, memcached)).To(ContainElement(ContainSubstring("options")))
			options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "options", Namespace: "default"}}
			Expect(k8sClient.Create(ctx, options)).To(Succeed())
			Expect(validator.ValidateCreate(ctx, memcached)).To(BeEmpty())
		})
	})
})
