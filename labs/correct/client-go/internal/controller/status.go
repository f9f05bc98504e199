package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.org/raw/apis/cache/v1alpha1"
)

// updateStatus sets the status and writes it. failure is what ensure returned, and problem
// what is wrong with the Service or the ConfigMap.
func (c *Controller) updateStatus(ctx context.Context, memcached *v1alpha1.Memcached, deployment *appsv1.Deployment, failure error, problem string) error {
	condition, warning := judge(memcached, deployment, failure)
	if condition == nil {
		return nil
	}
	wanted := memcached.DeepCopy()
	stuck := ""
	if warning {
		stuck = condition.Message
	} else if failure == nil && !complete(deployment) {
		stuck = replicaFailure(deployment)
	}
	meta.SetStatusCondition(&wanted.Status.Conditions, *condition)
	problem = strings.Trim(stuck+"; "+problem, "; ")
	meta.SetStatusCondition(&wanted.Status.Conditions, either("Degraded", problem != "", problem, memcached))
	meta.SetStatusCondition(&wanted.Status.Conditions, either("Progressing", stuck == "" && (failure != nil || !complete(deployment)), "", memcached))
	if registered, known := c.registered.Load(memcached.UID); known {
		meta.SetStatusCondition(&wanted.Status.Conditions, registered.(metav1.Condition))
	}
	if failure == nil {
		wanted.Status.Scale = v1alpha1.ScaleStatus{
			Replicas: deployment.Status.Replicas, Selector: metav1.FormatLabelSelector(deployment.Spec.Selector),
		}
	}
	return c.writeStatus(ctx, memcached, wanted)
}

// writeStatus writes the status if it has changed, and warns when Degraded becomes True.
func (c *Controller) writeStatus(ctx context.Context, memcached, wanted *v1alpha1.Memcached) error {
	if equality.Semantic.DeepEqual(wanted.Status, memcached.Status) {
		return nil
	}
	if _, err := c.Memcacheds.In(memcached.Namespace).UpdateStatus(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	now := meta.FindStatusCondition(wanted.Status.Conditions, "Degraded")
	if now.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(memcached.Status.Conditions, "Degraded") {
		c.Events.Eventf(memcached, nil, corev1.EventTypeWarning, "HelpWanted", "Ensure", "%.1000s", now.Message)
	}
	return nil
}

// either is a condition that says yes or no, and perhaps why.
func either(kind string, yes bool, why string, memcached *v1alpha1.Memcached) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "No", Message: why, ObservedGeneration: memcached.Generation}
	if yes {
		c.Status, c.Reason = metav1.ConditionTrue, "Yes"
	}
	return c
}

// replicaFailure says why Pods are refused, "" if they are not.
func replicaFailure(deployment *appsv1.Deployment) string {
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// complete says what `kubectl rollout status` waits for.
func complete(deployment *appsv1.Deployment) bool {
	s, wanted := deployment.Status, replicas(deployment)
	return s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas >= wanted && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
}

// judge returns the condition, nil when there is nothing to say about the failure but to try again, and
// whether to warn.
func judge(memcached *v1alpha1.Memcached, deployment *appsv1.Deployment, failure error) (condition *metav1.Condition, warning bool) {
	c := &metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, ObservedGeneration: memcached.Generation}
	var foreign *foreignError
	switch {
	case errors.As(failure, &foreign):
		c.Reason, c.Message = "DeploymentNotOurs", foreign.message
		return c, true
	case failure != nil && refused(failure):
		c.Reason, c.Message = "DeploymentRefused", failure.Error()
		return c, true
	case failure != nil:
		return nil, false
	case deployment.Status.AvailableReplicas >= memcached.Spec.Size:
		c.Status, c.Reason = metav1.ConditionTrue, "EnoughServers"
		c.Message = fmt.Sprintf("%d servers are available", deployment.Status.AvailableReplicas)
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
