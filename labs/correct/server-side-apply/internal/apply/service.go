package apply

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
)

// wantedService has all fields of the Service that this operator sets. It has no address of its own: a client of memcached chooses the
// server of a key itself, so it has to know the address of each.
func wantedService(memcached *cachev1alpha1.Memcached) *corev1ac.ServiceApplyConfiguration {
	port := memcached.Spec.ContainerPort
	return corev1ac.Service(memcached.Name, memcached.Namespace).
		WithOwnerReferences(controlledBy(memcached)).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(labelsOf(memcached)).
			WithPorts(corev1ac.ServicePort().WithPort(port).WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromInt32(port))))
}

// applyService sends what is wanted of the Service, unless it has been applied already. problem says what somebody else
// has to see to, and an error is to be tried again.
func (r *Reconciler) applyService(ctx context.Context, memcached *cachev1alpha1.Memcached) (problem string, _ error) {
	if strings.Contains(memcached.Name, ".") {
		return "", nil // which the name of a Service must not have
	}
	live := &corev1.Service{}
	there, err := r.read(ctx, client.ObjectKeyFromObject(memcached), live)
	if err != nil {
		return "", fmt.Errorf("get Service: %w", err)
	}
	want := wantedService(memcached)
	if there {
		if !metav1.IsControlledBy(live, memcached) {
			return fmt.Sprintf("the Service %s was there before, and is left alone", live.Name), nil
		}
		if !live.DeletionTimestamp.IsZero() {
			return "", nil
		}
		if replaced, err := r.replacePorts(ctx, live, memcached.Spec.ContainerPort); replaced || err != nil {
			return "", err // Its watch event starts the next pass.
		}
		ours, err := corev1ac.ExtractService(live, Owner)
		if err != nil {
			return "", fmt.Errorf("read who owns the Service's fields: %w", err)
		}
		if ours.Spec != nil {
			ours.Spec.Ports = want.Spec.Ports // They are right by now, whosever they are.
		}
		if equality.Semantic.DeepEqual(ours, want) {
			return "", nil
		}
		want.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	}
	err = r.Apply(ctx, want, client.FieldOwner(Owner), client.ForceOwnership)
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err):
		return fmt.Sprintf("the Service is invalid: %v", err), nil
	case refused(err):
		problem = fmt.Sprintf("the Service was refused: %v", err)
	}
	return problem, fmt.Errorf("apply Service: %w", err)
}

// replacePorts is the one thing that an apply cannot do. Ports are merged by their number: one that somebody else has set
// would stay beside ours.
func (r *Reconciler) replacePorts(ctx context.Context, live *corev1.Service, port int32) (replaced bool, _ error) {
	base := live.DeepCopy()
	if len(live.Spec.Ports) != 1 {
		live.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	only := &live.Spec.Ports[0]
	only.Port, only.Protocol, only.TargetPort = port, corev1.ProtocolTCP, intstr.FromInt32(port)
	if equality.Semantic.DeepEqual(base, live) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, live, patch, client.FieldOwner(Owner)); err != nil {
		return false, fmt.Errorf("patch the Service's ports: %w", err)
	}
	return true, nil
}
