// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// conditionDegraded is the type of the condition that says whether somebody has to act.
	conditionDegraded = "Degraded"
)

// lab:8 end

// The reasons of conditions, and of the Warnings about them.
const (
	reasonAvailable   = "ReplicasAvailable"
	reasonUnavailable = "ReplicasUnavailable" // Pods are starting
	reasonBlocked     = "ReplicasBlocked"     // the API server refuses Pods, by a quota for example
	reasonFailed      = "ReconcileFailed"     // the API server refuses a request of the operator

	reasonDeploymentConflict = "DeploymentConflict" // the Deployment of that name is someone else's
	// lab:9 begin more-reasons
	reasonServiceConflict  = "ServiceConflict"
	reasonConfigMapInvalid = "ConfigMapInvalid"
	// lab:9 end
	// lab:10 begin registry-reasons
	reasonRegistryRefused     = "RegistryRefused"
	reasonRegistryUnavailable = "RegistryUnavailable"
	// lab:10 end
)

// lab:5 begin outcome

// outcome is what one pass found and did.
type outcome struct {
	deployment    *appsv1.Deployment // nil if there is none, or if it is not known
	deploymentErr error
	// lab:9 begin more-errors Add the errors of the Service and of the ConfigMap.
	serviceErr error
	optionsErr error
	// lab:9 end
	// lab:10 begin registry-error Add the error of the registry.
	registryErr error
	// lab:10 end
	statusErr error
}

// errs returns the errors of the pass, the most important one first. Some may be nil.
func (o outcome) errs() []error {
	return []error{
		o.deploymentErr,
		// lab:9 begin return-more-errors
		o.serviceErr,
		o.optionsErr,
		// lab:9 end
		// lab:10 begin return-registry-error
		o.registryErr,
		// lab:10 end
		o.statusErr,
	}
}

// isStale tells whether the pass worked on an old state of the cluster.
func (o outcome) isStale() bool { return slices.ContainsFunc(o.errs(), isStale) }

// lab:5 end

// lab:5 begin terminal-error

// terminalError is an error that another pass does not solve: somebody has to
// change something, and a watch reports that change.
type terminalError struct{ reason, message string }

func (e *terminalError) Error() string { return e.message }

func isTerminal(err error) bool {
	terminal := (*terminalError)(nil)
	return errors.As(err, &terminal)
}

// reasonOf returns the reason that conditions and events give for err.
func reasonOf(err error) string {
	if terminal := (*terminalError)(nil); errors.As(err, &terminal) {
		return terminal.reason
	}
	// lab:10 begin unavailable-reason Tell a registry that is away from a request that the API server refuses.
	if errors.Is(err, registry.ErrUnavailable) {
		return reasonRegistryUnavailable
	}
	// lab:10 end
	return reasonFailed
}

// lab:5 end

// lab:5 begin result

// staleRequeue is the longest wait for the cache after a stale pass. Nearly
// always an event arrives earlier and starts a pass at once.
const staleRequeue = time.Second

// isStale tells whether err only says that the cluster has changed since the
// cache last heard of it: the object exists already, is gone or was changed, or
// its namespace is being deleted. Users need not know of it.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// resultFor returns what Reconcile returns after a pass with outcome o.
func (r *MemcachedReconciler) resultFor(o outcome) (ctrl.Result, error) {
	if o.isStale() {
		return ctrl.Result{RequeueAfter: staleRequeue}, nil
	}
	if err := errors.Join(slices.DeleteFunc(o.errs(), isTerminal)...); err != nil {
		return ctrl.Result{}, err // The next pass follows after a pause, which grows.
	}
	// lab:10 begin registry-results Return an error without another pass for a refused entry, else a time if there is a registry.
	if isTerminal(o.registryErr) {
		return ctrl.Result{}, reconcile.TerminalError(o.registryErr)
	}
	if r.Registry != nil {
		return ctrl.Result{RequeueAfter: resyncInterval}, nil // No watch reports what changes in the registry.
	}
	// lab:10 end
	return ctrl.Result{}, nil
}

// lab:5 end

// lab:5 begin update-status

// updateStatus sets the conditions of memcached as o asks, and writes them.
func (r *MemcachedReconciler) updateStatus(ctx context.Context, memcached *cachev1alpha1.Memcached, o outcome) error {
	before := memcached.Status.DeepCopy()
	meta.SetStatusCondition(&memcached.Status.Conditions, available(memcached, o))
	// lab:8 begin set-more Set Progressing and Degraded, replicas and selector, before the one write.
	meta.SetStatusCondition(&memcached.Status.Conditions, progressing(memcached, o))
	meta.SetStatusCondition(&memcached.Status.Conditions, degraded(memcached, o))
	if o.deployment != nil { // else the last known values stay
		memcached.Status.Replicas = o.deployment.Status.Replicas
		memcached.Status.Selector = metav1.FormatLabelSelector(o.deployment.Spec.Selector)
	}
	// lab:8 end
	// lab:10 begin set-registered Set Registered, too.
	if r.Registry != nil {
		meta.SetStatusCondition(&memcached.Status.Conditions, registered(memcached, o))
	}
	// lab:10 end
	return r.writeStatus(ctx, memcached, before)
}

// writeStatus writes the status of memcached, unless it is the same as before.
func (r *MemcachedReconciler) writeStatus(ctx context.Context, memcached *cachev1alpha1.Memcached, before *cachev1alpha1.MemcachedStatus) error {
	if equality.Semantic.DeepEqual(before, &memcached.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, memcached); err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	// lab:6 begin warn Warn in an event, when things have just gone wrong.
	r.warn(memcached, before)
	// lab:6 end
	return nil
}

// lab:5 end

// lab:5 begin available

// available returns the condition Available. It believes nothing but the status
// of the Deployment: to have asked for replicas is not to have them.
func available(memcached *cachev1alpha1.Memcached, o outcome) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionAvailable,
		Status:             metav1.ConditionFalse,
		Reason:             reasonUnavailable,
		ObservedGeneration: memcached.Generation,
	}
	deployment := o.deployment
	switch {
	case o.deploymentErr != nil:
		condition.Reason, condition.Message = reasonOf(o.deploymentErr), o.deploymentErr.Error()
	// lab:9 begin no-deployment Without its ConfigMap, a new Memcached has no Deployment yet.
	case deployment == nil:
		condition.Message = "there is no Deployment yet"
	// lab:9 end
	case deployment.Status.AvailableReplicas >= memcached.Spec.Size:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reasonAvailable, count(memcached, deployment)
	case replicaFailure(deployment) != "":
		condition.Reason, condition.Message = reasonBlocked, count(memcached, deployment)+": "+replicaFailure(deployment)
	default:
		condition.Message = count(memcached, deployment)
	}
	return condition
}

// count says how many replicas there are, and how many there should be.
func count(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) string {
	return fmt.Sprintf("replicas: %d available, %d wanted", deployment.Status.AvailableReplicas, memcached.Spec.Size)
}

// replicaFailure returns why the API server refuses Pods of deployment, in the
// words of the deployment controller, or nothing.
func replicaFailure(deployment *appsv1.Deployment) string {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// lab:5 end

// lab:8 begin progressing

// progressing returns the condition Progressing: True while Pods come and go, and
// nobody has to do anything but wait.
func progressing(memcached *cachev1alpha1.Memcached, o outcome) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionProgressing,
		Status:             metav1.ConditionFalse,
		Reason:             "Settled",
		ObservedGeneration: memcached.Generation,
	}
	switch {
	case o.deployment == nil || isBlocked(o.deployment):
		condition.Reason, condition.Message = "Stuck", "see the condition Degraded"
	case !isSettled(o.deployment):
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = "PodsChanging", count(memcached, o.deployment)
	}
	return condition
}

// lab:8 end

// lab:8 begin degraded

// degraded returns the condition Degraded: True while somebody has to act. Its
// message tells all problems, its reason is that of one.
func degraded(memcached *cachev1alpha1.Memcached, o outcome) metav1.Condition {
	problems := o.errs()
	if o.deployment != nil && isBlocked(o.deployment) {
		problems = slices.Insert(problems, 0, error(&terminalError{reasonBlocked, replicaFailure(o.deployment)}))
	}
	condition := metav1.Condition{
		Type:               conditionDegraded,
		Status:             metav1.ConditionFalse,
		Reason:             "AsExpected",
		ObservedGeneration: memcached.Generation,
	}
	if err := errors.Join(problems...); err != nil {
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = reasonOf(err), strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return condition
}

// lab:8 end

// lab:8 begin settled

// isBlocked tells whether Pods of deployment are missing because the API server refuses them.
func isBlocked(deployment *appsv1.Deployment) bool {
	return !isSettled(deployment) && replicaFailure(deployment) != ""
}

// isSettled tells whether deployment has exactly the Pods that it asks for, all of
// its newest template and all available.
func isSettled(deployment *appsv1.Deployment) bool {
	status, wanted := deployment.Status, replicas(deployment)
	return status.ObservedGeneration == deployment.Generation && status.Replicas == wanted &&
		status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted
}

// lab:8 end

// lab:6 begin warn-once Warn when a failure is new, and be quiet while it lasts.

// maxNote is how long the text of an event may be, in bytes.
const maxNote = 1024

// warn records a Warning if memcached has a problem that before does not tell
// of. It is called after the status has been written: a stale pass gets a
// conflict there and does not come this far, so nothing is told twice.
func (r *MemcachedReconciler) warn(memcached *cachev1alpha1.Memcached, before *cachev1alpha1.MemcachedStatus) {
	// lab:8 begin warn-degraded From now on warn when Degraded becomes True or changes its reason.
	now := meta.FindStatusCondition(memcached.Status.Conditions, conditionDegraded)
	last := meta.FindStatusCondition(before.Conditions, conditionDegraded)
	if now.Status != metav1.ConditionTrue || last != nil && last.Reason == now.Reason {
		return
	}
	// lab:8 before
	// now := meta.FindStatusCondition(memcached.Status.Conditions, conditionAvailable)
	// last := meta.FindStatusCondition(before.Conditions, conditionAvailable)
	// if now.Reason == reasonAvailable || now.Reason == reasonUnavailable || last != nil && last.Reason == now.Reason {
	// 	return
	// }
	// lab:8 end
	note := now.Message
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	r.Recorder.Eventf(memcached, nil, corev1.EventTypeWarning, now.Reason, "Reconcile", "%s", note)
}

// lab:6 end
