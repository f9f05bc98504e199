package operator

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.org/caches/pkg/apis/cache/v1alpha1"
)

// identity are the labels by which the Pods of a Memcached are found, and no others.
func identity(memcached *v1alpha1.Memcached) map[string]string {
	return map[string]string{"app": "memcached", "memcached": labelValue(memcached.Name)}
}

// labelValue is a name, or a digest of one that is too long for a label.
func labelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return fmt.Sprintf("%x", sha256.Sum224([]byte(name)))
}

// madeFor says whether an existing Deployment runs the Pods of the Memcached.
func madeFor(deployment *appsv1.Deployment, memcached *v1alpha1.Memcached) bool {
	return equality.Semantic.DeepEqual(deployment.Spec.Selector, metav1.SetAsLabelSelector(identity(memcached)))
}

// shape sets what is ours in a Deployment, new or old, and nothing else: labels, annotations and defaults
// that others have set stay, or the library would see a difference on every pass.
func shape(deployment *appsv1.Deployment, memcached *v1alpha1.Memcached, image string) {
	spec := &deployment.Spec
	if deployment.UID == "" {
		spec.Selector = metav1.SetAsLabelSelector(identity(memcached)) // for good
	}
	deployment.Labels = with(deployment.Labels, identity(memcached))
	spec.Replicas = new(memcached.Spec.Size)
	spec.Template.Labels = with(spec.Template.Labels, identity(memcached))
	shapePod(&spec.Template.Spec, memcached.Spec.ContainerPort, image)
}

func shapePod(pod *corev1.PodSpec, port int32, image string) {
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(1000)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Sysctls:        []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
	}
	if len(pod.Containers) != 1 {
		pod.Containers = make([]corev1.Container, 1)
	}
	container := &pod.Containers[0]
	container.Name = "server"
	container.Image = image
	container.Command = []string{"memcached", "--port=" + strconv.Itoa(int(port)), "--memory-limit=32"}
	container.Args = nil
	container.Ports = []corev1.ContainerPort{{Name: "cache", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func with(labels, more map[string]string) map[string]string {
	if labels == nil {
		return more
	}
	maps.Copy(labels, more)
	return labels
}
