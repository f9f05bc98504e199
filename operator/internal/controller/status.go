// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

// conditionAvailable is the type of the condition that says whether memcached serves.
const conditionAvailable = "Available"

// lab:8 begin condition-types

const (
	// conditionProgressing is the type of the condition that says whether something is still going on.
	conditionProgressing = "Progressing"
	// conditionDegraded is the type of the condition that says whether somebody has to look after it.
	conditionDegraded = "Degraded"
)

// lab:8 end

// The reasons of the condition Available.
const (
	reasonAvailable   = "ReplicasAvailable"   // all is well
	reasonUnavailable = "ReplicasUnavailable" // on the way there
	reasonBlocked     = "ReplicasBlocked"     // Pods are refused, by a quota for example
	reasonForeign     = "DeploymentConflict"  // a Deployment of that name is someone else's
	reasonFailed      = "DeploymentFailed"    // the API server refused the Deployment
)

// lab:5 begin report

// reportStatus writes the condition Available into the status of memcached,
// unless it stands there already. failure is what ensureDeployment came back
// with; deployment is nil if there was one.
//
// What it returns is the outcome of the whole pass.
func (r *MemcachedReconciler) reportStatus(ctx context.Context, memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment, failure error) (ctrl.Result, error) {
	if outdated(failure) {
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}

	before := memcached.Status.DeepCopy()
	meta.SetStatusCondition(&memcached.Status.Conditions, available(memcached, deployment, failure))
	// lab:8 begin report-more Set Progressing and Degraded, replicas and selector, before the one write.
	meta.SetStatusCondition(&memcached.Status.Conditions, progressing(memcached, deployment, failure))
	meta.SetStatusCondition(&memcached.Status.Conditions, degraded(memcached, deployment, failure))
	// lab:10 begin report-registered Set Registered, too.
	if r.Registry != nil {
		meta.SetStatusCondition(&memcached.Status.Conditions, registered(memcached, failure))
	}
	// lab:10 end
	if deployment != nil { // else what was seen last is all that is known
		memcached.Status.Replicas = deployment.Status.Replicas
		memcached.Status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	}
	// lab:8 end
	if !equality.Semantic.DeepEqual(before, &memcached.Status) {
		if err := r.Status().Update(ctx, memcached); outdated(err) {
			return ctrl.Result{RequeueAfter: catchUp}, nil
		} else if err != nil {
			return ctrl.Result{}, errors.Join(failure, fmt.Errorf("update status: %w", err))
		}

		// lab:6 begin warn Warn in an event, when things have just gone wrong.
		r.warn(memcached, before)
		// lab:6 end
	}

	// lab:9 begin try-again Try again if anything is wrong that no watch tells the end of.
	if failure != nil && !waits(failure) {
		return ctrl.Result{}, failure
	}
	// lab:9 end
	// lab:10 begin returns Choose among the four answers: an error (above), an error that is not tried again, a time, nothing.
	if errors.Is(failure, registry.ErrRefused) {
		return ctrl.Result{}, reconcile.TerminalError(failure)
	}
	if r.Registry != nil {
		return ctrl.Result{RequeueAfter: lookAgain}, nil // The registry tells nobody what changes there.
	}
	// lab:10 end
	if errors.Is(failure, errForeign) {
		return ctrl.Result{}, nil // The watch tells when it changes.
	}
	// lab:9 begin wait-for-others Wait for whoever mends what is wrong beside the Deployment.
	if errors.Is(failure, errBeside) {
		return ctrl.Result{}, nil // So does this one.
	}
	// lab:9 end
	return ctrl.Result{}, failure
}

// lab:5 end

// lab:5 begin available

// available returns the condition Available. It believes nothing but the status
// of the Deployment: to have asked for replicas is not to have them.
func available(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment, failure error) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionAvailable,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: memcached.Generation,
	}
	switch {
	case errors.Is(failure, errForeign):
		condition.Reason, condition.Message = reasonForeign, failure.Error()
	// lab:9 begin serves-on What is wrong beside a Deployment does not keep it from serving.
	case errors.Is(failure, errBeside) && deployment != nil:
		return available(memcached, deployment, nil)
	// lab:9 end
	// lab:10 begin serves-unregistered Nor does the registry.
	case unregistered(failure) && deployment != nil:
		return available(memcached, deployment, nil)
	// lab:10 end
	case failure != nil:
		condition.Reason, condition.Message = reasonFailed, failure.Error()
	case deployment.Status.ObservedGeneration < deployment.Generation:
		condition.Reason, condition.Message = reasonUnavailable, "the latest change of the Deployment has not taken effect yet"
	case deployment.Status.AvailableReplicas == memcached.Spec.Size:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = reasonAvailable, count(memcached, deployment)
	case refusal(deployment) != "":
		condition.Reason, condition.Message = reasonBlocked, count(memcached, deployment)+": "+refusal(deployment)
	default:
		condition.Reason, condition.Message = reasonUnavailable, count(memcached, deployment)
	}
	return condition
}

// lab:5 end

// lab:8 begin progressing

// progressing returns the condition Progressing: True while Pods come and go, and
// nobody has to do anything but wait.
func progressing(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment, failure error) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionProgressing,
		Status:             metav1.ConditionFalse,
		Reason:             "Settled",
		ObservedGeneration: memcached.Generation,
	}
	switch {
	// lab:9 begin goes-on What is wrong beside a Deployment does not keep its Pods from coming.
	case errors.Is(failure, errBeside) && deployment != nil:
		return progressing(memcached, deployment, nil)
	// lab:9 end
	// lab:10 begin goes-on-unregistered Nor does the registry.
	case unregistered(failure) && deployment != nil:
		return progressing(memcached, deployment, nil)
	// lab:10 end
	case trouble(deployment, failure) != "":
		condition.Reason, condition.Message = "Stuck", "nothing happens until somebody helps; see the condition Degraded"
	case !settled(deployment):
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = "PodsChanging", count(memcached, deployment)
	}
	return condition
}

// lab:8 end

// lab:8 begin degraded

// degraded returns the condition Degraded: True while somebody has to help.
func degraded(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment, failure error) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionDegraded,
		Status:             metav1.ConditionFalse,
		Reason:             "AsExpected",
		ObservedGeneration: memcached.Generation,
	}
	if text := trouble(deployment, failure); text != "" {
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = "NeedsHelp", text
	}
	return condition
}

// lab:8 end

// lab:8 begin trouble

// trouble says what keeps deployment from its Pods and does not go away by
// itself, or nothing.
func trouble(deployment *appsv1.Deployment, failure error) string {
	switch {
	case failure != nil:
		return failure.Error()
	case settled(deployment):
		return ""
	default:
		return refusal(deployment)
	}
}

// settled tells whether deployment has exactly the Pods that it asks for, all of
// today's template and all available.
func settled(deployment *appsv1.Deployment) bool {
	status, wanted := deployment.Status, replicas(deployment)
	return status.ObservedGeneration == deployment.Generation && status.Replicas == wanted &&
		status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted
}

// lab:8 end

// count says how many replicas there are, and how many there should be.
func count(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) string {
	return fmt.Sprintf("replicas: %d available, %d wanted", deployment.Status.AvailableReplicas, memcached.Spec.Size)
}

// refusal returns why the Pods of deployment cannot be created or deleted, in
// the words of the deployment controller, or nothing.
func refusal(deployment *appsv1.Deployment) string {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// catchUp is how long to wait for the cache to catch up. Nearly always the news
// is there before, and makes a pass at once.
const catchUp = time.Second

// outdated tells whether err only says that the world has moved on since the
// cache last heard of it: something is there by now, or gone, or changed, or the
// whole namespace is on its way out. That is nothing to trouble a user with.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// lab:6 begin warn-once Warn when a failure is new, and be quiet while it lasts.

// maxNote is how long the text of an event may be, in bytes.
const maxNote = 1024

// warn writes a Warning when the condition Available tells of a failure that it
// did not tell of before. It is called after the status has been written: a
// pass on outdated data gets a conflict there and does not come this far, so
// that nothing is told twice.
func (r *MemcachedReconciler) warn(memcached *cachev1alpha1.Memcached, before *cachev1alpha1.MemcachedStatus) {
	now := meta.FindStatusCondition(memcached.Status.Conditions, conditionAvailable)
	switch now.Reason {
	case reasonAvailable, reasonUnavailable:
		return
	}
	if last := meta.FindStatusCondition(before.Conditions, conditionAvailable); last != nil && last.Reason == now.Reason {
		return
	}
	note := now.Message
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	r.Recorder.Eventf(memcached, nil, corev1.EventTypeWarning, now.Reason, "EnsureDeployment", "%s", note)
}

// lab:6 end
