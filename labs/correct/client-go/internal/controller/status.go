package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.org/raw/apis/cache/v1alpha1"
)

// tellStatus writes the condition Available, if it is not there already, and warns when it turns bad.
// failure is what ensure returned.
func (c *Controller) tellStatus(ctx context.Context, memcached *v1alpha1.Memcached, deployment *appsv1.Deployment, failure error) error {
	condition, warning := judge(memcached, deployment, failure)
	if condition == nil {
		return nil
	}
	before := meta.FindStatusCondition(memcached.Status.Conditions, condition.Type)
	wanted := memcached.DeepCopy()
	if !meta.SetStatusCondition(&wanted.Status.Conditions, *condition) {
		return nil
	}
	if _, err := c.Memcacheds.In(memcached.Namespace).UpdateStatus(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	if warning && (before == nil || before.Reason != condition.Reason) {
		c.Events.Eventf(memcached, nil, corev1.EventTypeWarning, condition.Reason, "Ensure", "%.1000s", condition.Message)
	}
	return nil
}

// judge returns the condition, nil when there is nothing to say about the failure but to try again, and
// whether to warn.
func judge(memcached *v1alpha1.Memcached, deployment *appsv1.Deployment, failure error) (condition *metav1.Condition, warning bool) {
	c := &metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, ObservedGeneration: memcached.Generation}
	var foreign *foreignError
	switch {
	case errors.As(failure, &foreign) && foreign.passing:
		c.Reason, c.Message = "PredecessorLeaving", foreign.message
	case errors.As(failure, &foreign):
		c.Reason, c.Message = "DeploymentNotOurs", foreign.message
		return c, true
	case failure != nil && refused(failure):
		c.Reason, c.Message = "DeploymentRefused", failure.Error()
		return c, true
	case failure != nil:
		return nil, false
	case deployment.Status.AvailableReplicas == memcached.Spec.Size:
		c.Status, c.Reason = metav1.ConditionTrue, "EnoughServers"
		c.Message = fmt.Sprintf("All %d servers are available", memcached.Spec.Size)
	default:
		c.Reason = "NotEnoughServers"
		c.Message = fmt.Sprintf("%d servers are available, %d are wanted", deployment.Status.AvailableReplicas, memcached.Spec.Size)
	}
	return c, false
}

// refused says that the API server does not want what was sent, rather than could not take it.
func refused(err error) bool {
	return !leaving(err) && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}
