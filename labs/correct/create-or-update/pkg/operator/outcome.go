package operator

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.org/caches/pkg/apis/cache/v1alpha1"
)

// writeDown puts the outcome of a pass into the status, if it is not there already, and warns of a failure
// when it begins. It returns the failure, or what kept it from being written down.
func (o *Operator) writeDown(ctx context.Context, memcached *v1alpha1.Memcached, deployment *appsv1.Deployment, failure error) error {
	if failure != nil && !tellable(failure) {
		return failure
	}
	condition := judge(memcached, deployment, failure)
	var last string
	if c := meta.FindStatusCondition(memcached.Status.Conditions, condition.Type); c != nil {
		last = c.Reason
	}
	if meta.SetStatusCondition(&memcached.Status.Conditions, condition) {
		if err := o.client.Status().Update(ctx, memcached); err != nil {
			return client.IgnoreNotFound(err)
		}
		if failure != nil && condition.Reason != last {
			o.recorder.Event(memcached, corev1.EventTypeWarning, condition.Reason, condition.Message)
		}
	}
	return failure
}

// tellable says whether a failure is the user's business: somebody is in the way, or says no. That the
// API server cannot be reached, or is ahead of us, is not.
func tellable(err error) bool {
	var foreign *foreignError
	if errors.As(err, &foreign) {
		return true
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// judge is the condition after a pass. It believes the Deployment's status and nothing else.
func judge(memcached *v1alpha1.Memcached, deployment *appsv1.Deployment, failure error) metav1.Condition {
	c := metav1.Condition{
		Type: "Available", Status: metav1.ConditionFalse, ObservedGeneration: memcached.Generation,
		Message: fmt.Sprintf("available: %d of %d", deployment.Status.AvailableReplicas, memcached.Spec.Size),
	}
	var foreign *foreignError
	switch {
	case errors.As(failure, &foreign):
		c.Reason, c.Message = "DeploymentTaken", failure.Error()
	case failure != nil:
		c.Reason, c.Message = "DeploymentRejected", failure.Error()
	case deployment.Status.AvailableReplicas == memcached.Spec.Size:
		c.Status, c.Reason = metav1.ConditionTrue, "Complete"
	case deployment.Status.AvailableReplicas == 0:
		c.Reason = "NoServers"
	default:
		c.Reason = "Incomplete"
	}
	return c
}
