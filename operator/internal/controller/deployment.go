// SPDX-License-Identifier: Apache-2.0

// Package controller keeps the Deployment of each Memcached as its spec asks.
package controller

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// memcachedUser is the user that memcached runs as. Any user but root will do:
// memcached needs no files.
const memcachedUser = 1001

// newDeployment returns a Deployment with what is fixed for its whole life: its
// name and its selector, which the API server never lets change.
func newDeployment(memcached *cachev1alpha1.Memcached) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:      memcached.Name,
			Namespace: memcached.Namespace,
		},
		Spec: appsv1.DeploymentSpec{Selector: selectorFor(memcached)},
	}
}

// lab:4 begin mutate-deployment

// mutateDeployment sets those fields of deployment that the operator answers for,
// and no others. What somebody else has put there stays: annotations, labels, the
// revision of the deployment controller, the defaults of the API server.
func mutateDeployment(deployment *appsv1.Deployment, memcached *cachev1alpha1.Memcached, image string) {
	labels := labelsFor(memcached)
	deployment.Labels = merge(deployment.Labels, labels)
	deployment.Spec.Replicas = new(memcached.Spec.Size)

	pod := &deployment.Spec.Template
	pod.Labels = merge(pod.Labels, labels)
	pod.Spec.AutomountServiceAccountToken = new(false)
	pod.Spec.SecurityContext = podSecurity()
	if len(pod.Spec.Containers) != 1 {
		pod.Spec.Containers = make([]corev1.Container, 1)
	}
	mutateContainer(&pod.Spec.Containers[0], memcached.Spec.ContainerPort, image)
	// lab:12 begin mutate-memory-too Tell memcached its memory and its largest item.
	mutateMemory(&pod.Spec.Containers[0], memcached.Spec.Memory, memcached.Spec.MaxItemSize)
	// lab:12 end
}

// lab:4 end

// lab:4 begin mutate-container

// mutateContainer sets the fields of the one container that the operator answers for.
func mutateContainer(container *corev1.Container, port int32, image string) {
	container.Name = "memcached"
	container.Image = image
	container.Command = []string{"memcached"}
	container.Args = []string{"--port=" + strconv.Itoa(int(port))}
	container.Ports = []corev1.ContainerPort{{
		Name:          "memcached",
		ContainerPort: port,
		Protocol:      corev1.ProtocolTCP,
	}}
	if container.ReadinessProbe == nil {
		container.ReadinessProbe = &corev1.Probe{}
	}
	// The API server fills in the other fields of the probe, and they stay.
	container.ReadinessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
	container.ReadinessProbe.PeriodSeconds = 2
	container.Resources = corev1.ResourceRequirements{ // memcached keeps up to 64 MiB of values
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// lab:4 end

// lab:12 begin mutate-memory

// mutateMemory tells memcached how much it keeps, and how large a value may be, in
// MiB; 0 is not given. What is not given changes nothing: the Pods of an earlier
// Memcached do not start anew.
func mutateMemory(container *corev1.Container, memory, maxItemSize int32) {
	if memory != 0 {
		container.Args = append(container.Args, fmt.Sprintf("--memory-limit=%d", memory))
		container.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(int64(memory)<<20, resource.BinarySI)
		container.Resources.Limits[corev1.ResourceMemory] = *resource.NewQuantity(int64(memory)<<21, resource.BinarySI)
	}
	if maxItemSize != 0 {
		container.Args = append(container.Args, fmt.Sprintf("--max-item-size=%dm", maxItemSize))
	}
}

// lab:12 end

// lab:4 begin pod-security

// podSecurity returns what the Pod Security Standard "restricted" asks for.
func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(memcachedUser)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		// containerPort may be below 1024, and this user could not listen there.
		Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
	}
}

// lab:4 end

// lab:4 begin selector

// selectorFor returns a selector that picks the Pods of memcached and of no
// other. It must never depend on anything that can change, like the image.
func selectorFor(memcached *cachev1alpha1.Memcached) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{
		"app.kubernetes.io/name":     "memcached",
		"app.kubernetes.io/instance": instance(memcached.Name),
	}}
}

// lab:4 end

// labelsFor returns the labels of the Deployment and the Pods of memcached.
func labelsFor(memcached *cachev1alpha1.Memcached) map[string]string {
	return merge(selectorFor(memcached).MatchLabels, map[string]string{
		"app.kubernetes.io/managed-by": "memcached-operator",
	})
}

// instance returns name, or what stands for it in a label. A name may have 253
// characters, a label's value only 63.
func instance(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return fmt.Sprintf("%.40s-%x", name, sha256.Sum256([]byte(name)))[:validation.LabelValueMaxLength]
}

// lab:6 begin replicas

// replicas returns the number of replicas that deployment asks for.
func replicas(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1 // the API server's default
	}
	return *deployment.Spec.Replicas
}

// lab:6 end

// merge adds what is in extra to labels.
func merge(labels, extra map[string]string) map[string]string {
	if labels == nil {
		labels = make(map[string]string, len(extra))
	}
	maps.Copy(labels, extra)
	return labels
}
