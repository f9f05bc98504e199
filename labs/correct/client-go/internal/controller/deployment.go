package controller

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.org/raw/apis/cache/v1alpha1"
)

// labelsOf are on every Pod of a Memcached and on no other. The value is a digest, as a name can be too
// long for one.
func labelsOf(memcached *v1alpha1.Memcached) map[string]string {
	return map[string]string{"raw.example.org/memcached": fmt.Sprintf("%x", sha256.Sum224([]byte(memcached.Name)))}
}

func selectorOf(memcached *v1alpha1.Memcached) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelsOf(memcached)}
}

func selects(deployment *appsv1.Deployment, memcached *v1alpha1.Memcached) bool {
	return equality.Semantic.DeepEqual(deployment.Spec.Selector, selectorOf(memcached))
}

// newDeployment has what never changes.
func newDeployment(memcached *v1alpha1.Memcached) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       memcached.Namespace,
			Name:            memcached.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(memcached, v1alpha1.Kind)},
		},
		Spec: appsv1.DeploymentSpec{Selector: selectorOf(memcached)},
	}
}

// shape sets what may have changed, here or there. It leaves alone what the API server fills in and what
// others have added. A limit of nil leaves alone the one that is there, and "" is memcached's own.
func shape(deployment *appsv1.Deployment, memcached *v1alpha1.Memcached, image string, limit *string) {
	deployment.Spec.Replicas = new(memcached.Spec.Size)
	pod := &deployment.Spec.Template
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, labelsOf(memcached))
	switch {
	case limit == nil:
	case *limit == "":
		delete(pod.Annotations, limitNote)
	default:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, limitNote, *limit)
	}
	pod.Spec.EnableServiceLinks = new(false)
	pod.Spec.AutomountServiceAccountToken = new(false)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(nobody)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Sysctls:        []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
	}
	if len(pod.Spec.Containers) != 1 {
		pod.Spec.Containers = make([]corev1.Container, 1)
	}
	shapeContainer(&pod.Spec.Containers[0], memcached.Spec.ContainerPort, image)
	if limit := pod.Annotations[limitNote]; limit != "" {
		c := &pod.Spec.Containers[0]
		c.Args = append(c.Args, "--conn-limit", limit)
	}
}

// limitNote is the annotation that has the limit of connections that a Pod is started with.
const limitNote = "raw.example.org/connections"

// nobody is the user without rights.
const nobody = 65534

func shapeContainer(c *corev1.Container, port int32, image string) {
	c.Name, c.Image = "memcached", image
	c.Command = []string{"memcached"}
	c.Args = []string{"-v", "--port", strconv.Itoa(int(port))}
	if len(c.Ports) == 0 { // a note for readers, of the port that it began with: it opens nothing
		c.Ports = []corev1.ContainerPort{{ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func replicas(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}
