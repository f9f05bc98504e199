package apply

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
)

// instanceLabel tells the Pods of one Memcached from all others. A uid fits into a label, however long
// the name is, and no Memcached that comes later under the same name has it.
const instanceLabel = "cache.example.com/memcached-uid"

// user is whom memcached runs as: anybody but root.
const user = 11211

// wanted has all fields of the Deployment that this operator sets. Every other field belongs to others, and the API server
// keeps it.
func wanted(memcached *cachev1alpha1.Memcached, image string, options ...string) *appsv1ac.DeploymentApplyConfiguration {
	labels := labelsOf(memcached)
	return appsv1ac.Deployment(memcached.Name, memcached.Namespace).
		WithLabels(labels).
		WithOwnerReferences(controlledBy(memcached)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(memcached.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(corev1ac.PodSpec().
					WithAutomountServiceAccountToken(false).
					WithSecurityContext(podSecurity()).
					WithContainers(container(memcached.Spec.ContainerPort, image).WithArgs(options...)))))
}

func labelsOf(memcached *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{instanceLabel: string(memcached.UID)}
}

func controlledBy(memcached *cachev1alpha1.Memcached) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(cachev1alpha1.SchemeGroupVersion.String()).
		WithKind("Memcached").
		WithName(memcached.Name).
		WithUID(memcached.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

func container(port int32, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName("cache").
		WithImage(image).
		WithCommand("memcached").
		WithArgs("-p", strconv.Itoa(int(port))).
		// Both are the key of a port: the list is merged by it, so a new port replaces the old one.
		WithPorts(corev1ac.ContainerPort().WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithPrivileged(false).
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
}

// podSecurity is what the Pod Security Standard "restricted" asks for, and a way to listen on a port
// below 1024 without being root.
func podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithRunAsUser(user).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
		WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
}
