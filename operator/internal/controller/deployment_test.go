// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

func memcachedNamed(name string) *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-memcached", Generation: 3},
		Spec:       cachev1alpha1.MemcachedSpec{Size: 3, ContainerPort: 11211},
	}
}

func deploymentFor(memcached *cachev1alpha1.Memcached, image string) *appsv1.Deployment {
	deployment := newDeployment(memcached)
	mutateDeployment(deployment, memcached, image)
	return deployment
}

func TestMutateDeploymentKeepsWhatOthersHaveSet(t *testing.T) {
	g := NewWithT(t)
	memcached := memcachedNamed("cache")
	deployment := deploymentFor(memcached, "memcached:1")

	// What the API server fills in, and what people and controllers add.
	deployment.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	deployment.Labels["team"] = "mine"
	deployment.Spec.RevisionHistoryLimit = new(int32(10))
	pod := &deployment.Spec.Template
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	pod.Labels["team"] = "mine"
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	pod.Spec.Containers[0].ReadinessProbe.TimeoutSeconds = 1

	again := deployment.DeepCopy()
	mutateDeployment(again, memcached, "memcached:1")
	g.Expect(again).To(Equal(deployment))
}

func TestMutateDeploymentFollowsTheSpecAndTheImage(t *testing.T) {
	g := NewWithT(t)
	memcached := memcachedNamed("cache")
	deployment := deploymentFor(memcached, "memcached:1")

	memcached.Spec.Size, memcached.Spec.ContainerPort = 5, 80
	mutateDeployment(deployment, memcached, "memcached:2")
	container := deployment.Spec.Template.Spec.Containers[0]
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
	g.Expect(container.Image).To(Equal("memcached:2"))
	g.Expect(container.Ports).To(ConsistOf(HaveField("ContainerPort", BeEquivalentTo(80))))
	g.Expect(container.Args).To(ConsistOf("--port=80"))
	g.Expect(container.ReadinessProbe.TCPSocket.Port.IntValue()).To(Equal(80))

	memcached.Spec.Memory, memcached.Spec.MaxItemSize = 100, 8
	mutateDeployment(deployment, memcached, "memcached:2")
	container = deployment.Spec.Template.Spec.Containers[0]
	g.Expect(container.Args).To(ConsistOf("--port=80", "--memory-limit=100", "--max-item-size=8m"))
	g.Expect(container.Resources.Limits.Memory().String()).To(Equal("200Mi"))
}

func TestSelectorPicksTheOwnPodsOnly(t *testing.T) {
	long := strings.Repeat("a", validation.LabelValueMaxLength)
	names := []string{"cache", "cache-2", "cache.2", long, long + "b", long + "c", strings.Repeat("a.", 126) + "a"}
	for _, name := range names {
		selector, err := metav1.LabelSelectorAsSelector(selectorFor(memcachedNamed(name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, other := range names {
			deployment := deploymentFor(memcachedNamed(other), "host:5000/memcached@sha256:0")
			if picks := selector.Matches(labels.Set(deployment.Spec.Template.Labels)); picks != (name == other) {
				t.Errorf("the selector of %s picks the Pods of %s: %t", name, other, picks)
			}
		}
	}
}

func TestInstanceIsALabelValue(t *testing.T) {
	for _, name := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a.", 126) + "a"} {
		if problems := validation.IsValidLabelValue(instance(name)); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
