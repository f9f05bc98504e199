package env

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
)

// CauseNoDeployment is the cause when nothing is known about why there is no Deployment.
const CauseNoDeployment = "no-deployment"

// Deployment reads the Deployment of the Memcached's name. When there is none, the error is a finding.
func (m Memcached) Deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d, err := m.deployment(ctx)
	if err == nil && d.UID == "" {
		err = NoDeployment(d)
	}
	return d, err
}

// NoDeployment is the finding about a Deployment that is not there.
func NoDeployment(d *appsv1.Deployment) *finding.Finding {
	return finding.New(CauseNoDeployment, fmt.Sprintf("a Deployment %s/%s for the Memcached of that name", d.Namespace, d.Name), "none")
}

// DeploymentOf reads the Deployment of the Memcached's name when it is polled: use it with Eventually and Consistently. A
// Deployment that does not exist has a name and no UID.
func DeploymentOf(m Memcached) func(context.Context) (*appsv1.Deployment, error) {
	return Polled(m.deployment)
}

func (m Memcached) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	err := client.IgnoreNotFound(current.admin.Get(ctx, m.Key(), d))
	d.Namespace, d.Name = m.Namespace, m.Name // the client empties an object that it does not find
	return d, err
}

// EditDeployment changes the Memcached's Deployment as somebody with kubectl would.
func (m Memcached) EditDeployment(ctx context.Context, change func(*appsv1.Deployment)) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	base := d.DeepCopy()
	change(d)
	return current.admin.Patch(ctx, d, client.MergeFrom(base), client.FieldOwner("kubectl-edit"))
}

// CommandLine is the environment, the command and the arguments of the containers: all that can tell memcached where to listen.
func CommandLine(d *appsv1.Deployment) string {
	var words []string
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, variable := range c.Env {
			words = append(words, variable.Name+"="+variable.Value)
		}
		words = slices.Concat(words, c.Command, c.Args)
	}
	return strings.Join(words, " ")
}

// CreateForeign makes a Deployment of the Memcached's name that somebody else controls.
func (m Memcached) CreateForeign(ctx context.Context) (*appsv1.Deployment, error) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: RandomName()}}
	if err := current.admin.Create(ctx, owner); err != nil {
		return nil, fmt.Errorf("create the foreign owner: %w", err)
	}
	return m.createOther(ctx, *metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")))
}

// CreateUnowned makes a Deployment of the Memcached's name that nobody controls.
func (m Memcached) CreateUnowned(ctx context.Context) (*appsv1.Deployment, error) {
	return m.createOther(ctx)
}

// createOther makes a Deployment of the Memcached's name with labels that no operator would set.
func (m Memcached) createOther(ctx context.Context, owners ...metav1.OwnerReference) (*appsv1.Deployment, error) {
	labels := map[string]string{"example.org/app": "foreign"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: labels, OwnerReferences: owners},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: current.config.MemcachedImage}}},
			},
		},
	}
	return d, current.admin.Create(ctx, d)
}
