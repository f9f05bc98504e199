// Package memcacheds is the recipe for memcached servers: a Deployment for each Memcached. It reads
// nothing and writes nothing, so it can be tested without a cluster.
package memcacheds

import (
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.org/keeper/api"
	"example.org/keeper/internal/keeper"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Recipe makes Deployments of Memcacheds.
type Recipe struct {
	// Image is what memcached runs from.
	Image string
}

var _ keeper.Recipe[*api.Memcached, *appsv1.Deployment] = Recipe{}

// Parent implements [keeper.Recipe].
func (Recipe) Parent() *api.Memcached { return &api.Memcached{} }

// Child implements [keeper.Recipe].
func (Recipe) Child() *appsv1.Deployment { return &appsv1.Deployment{} }

// Conditions implements [keeper.Recipe].
func (Recipe) Conditions(memcached *api.Memcached) *[]metav1.Condition {
	return &memcached.Status.Conditions
}

// uidLabel picks the Pods of one Memcached. A name can be too long for a label, and can come back.
const uidLabel = "keeper.example.org/uid"

// Shape implements [keeper.Recipe].
func (r Recipe) Shape(memcached *api.Memcached, deployment *appsv1.Deployment) {
	identity := map[string]string{uidLabel: string(memcached.UID)}
	spec := &deployment.Spec
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{MatchLabels: identity}
	}
	spec.Replicas = new(memcached.Spec.Size)
	if spec.Template.Labels == nil {
		spec.Template.Labels = map[string]string{}
	}
	maps.Copy(spec.Template.Labels, identity)
	r.shapePod(&spec.Template.Spec, memcached.Spec.ContainerPort)
}

// portVariable is how memcached learns its port: Kubernetes puts it into the arguments.
const portVariable = "MEMCACHED_PORT"

// user is somebody without rights.
const user = 65532

func (r Recipe) shapePod(pod *corev1.PodSpec, port int32) {
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(user)),
		RunAsGroup:     new(int64(user)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Sysctls:        []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "1"}},
	}
	if len(pod.Containers) != 1 {
		pod.Containers = []corev1.Container{{}}
	}
	c := &pod.Containers[0]
	c.Name, c.Image = "memcached", r.Image
	c.Command = nil
	c.Args = []string{"-U", "0", "-p", "$(" + portVariable + ")"}
	c.Env = []corev1.EnvVar{{Name: portVariable, Value: strconv.Itoa(int(port))}}
	c.Ports = []corev1.ContainerPort{{ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// Judge implements [keeper.Recipe].
func (Recipe) Judge(memcached *api.Memcached, deployment *appsv1.Deployment) metav1.Condition {
	have, want := deployment.Status.AvailableReplicas, memcached.Spec.Size
	condition := metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "Waiting"}
	condition.Message = fmt.Sprintf("%d/%d", have, want)
	if have == want {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Serving"
	}
	return condition
}

// Story implements [keeper.Recipe].
func (Recipe) Story(before, after *appsv1.Deployment) (reason, note string) {
	from, to := before.Spec.Replicas, *after.Spec.Replicas
	switch {
	case from == nil:
		return "Created", fmt.Sprintf("There are going to be %d servers", to)
	case *from != to:
		return "Scaled", fmt.Sprintf("There were to be %d servers, now %d", *from, to)
	default:
		return "", ""
	}
}
