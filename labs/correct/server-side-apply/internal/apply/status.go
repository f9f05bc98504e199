package apply

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
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
	cachev1alpha1ac "example.org/applied/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

const available = "Available"

// The reasons of the condition. A failure is also the reason of a Warning.
const (
	allThere    = "AllServersAvailable"
	someMissing = "some_servers_missing"
	replaced    = "PredecessorLeaving"
	taken       = "NameTaken"
	rejected    = "DeploymentRefused"
)

func warns(reason string) bool { return reason == taken || reason == rejected }

// count says how many servers are available. live is nil when the Deployment has only just been created.
func count(memcached *cachev1alpha1.Memcached, live *appsv1.Deployment) metav1.Condition {
	var have int32
	if live != nil {
		have = live.Status.AvailableReplicas
	}
	message := fmt.Sprintf("%d of %d servers are available", have, memcached.Spec.Size)
	if have >= memcached.Spec.Size {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: allThere, Message: message}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: someMissing, Message: message}
}

// nameTaken says whose Deployment is in the way. That of an earlier Memcached of this name goes by itself.
func nameTaken(memcached *cachev1alpha1.Memcached, live *appsv1.Deployment) metav1.Condition {
	owner := metav1.GetControllerOf(live)
	switch {
	case owner == nil:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: taken,
			Message: fmt.Sprintf("Deployment %s exists and was not made for this Memcached", live.Name)}
	case owner.Kind == "Memcached" && owner.Name == memcached.Name:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: replaced,
			Message: fmt.Sprintf("Deployment %s of an earlier Memcached is being collected", live.Name)}
	default:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: taken,
			Message: fmt.Sprintf("Deployment %s belongs to %s %s", live.Name, owner.Kind, owner.Name)}
	}
}

func refusal(err error) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: rejected, Message: err.Error()}
}

// summary is Available, and what follows from it for Progressing and Degraded. problems are those of the Service and the ConfigMap:
// memcached serves all the same.
func summary(about metav1.Condition, live *appsv1.Deployment, problems string) []metav1.Condition {
	about.Type = available
	complete, reason := about.Status == metav1.ConditionTrue && rolledOut(live), about.Reason
	switch refusal := podsRefused(live); {
	case warns(about.Reason):
		problems = join(about.Message, problems)
	case !complete && refusal != "":
		reason, problems = "PodsRefused", join(refusal, problems)
	case problems != "":
		reason = "SurroundingsIncomplete"
	}
	degraded := condition("Degraded", problems != "", reason)
	degraded.Message = problems
	return []metav1.Condition{about, condition("Progressing", problems == "" && !complete, about.Reason), degraded}
}

// join is a list of those that are not empty.
func join(problems ...string) string {
	return strings.Join(slices.DeleteFunc(problems, func(s string) bool { return s == "" }), ", and ")
}

func condition(kind string, is bool, reason string) metav1.Condition {
	if is {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason}
}

// podsRefused says why the API server refuses servers, "" if it does not.
func podsRefused(live *appsv1.Deployment) string {
	if live != nil {
		for _, c := range live.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	}
	return ""
}

// rolledOut says that no server of an earlier template is left, and none is to come.
func rolledOut(live *appsv1.Deployment) bool {
	return live != nil && live.Status.ObservedGeneration == live.Generation &&
		live.Status.Replicas == live.Status.UpdatedReplicas && live.Spec.Replicas != nil && live.Status.Replicas == *live.Spec.Replicas
}

// report applies the whole status if it says anything new, and warns when Degraded becomes True or has another reason. live is the
// Memcached's own Deployment, nil when nothing is known of it.
func (r *Reconciler) report(ctx context.Context, memcached *cachev1alpha1.Memcached, live *appsv1.Deployment, about metav1.Condition, problems string) error {
	before, now := &memcached.Status, memcached.Status.DeepCopy()
	all := summary(about, live, problems)
	if r.Registry != nil && memcached.DeletionTimestamp.IsZero() {
		all = append(all, r.Registry.register(ctx, memcached)) // last, when nothing has to wait for it any more
	}
	for _, condition := range all {
		condition.ObservedGeneration = memcached.Generation
		meta.SetStatusCondition(&now.Conditions, condition)
	}
	if live != nil {
		now.Servers, now.LabelSelector = live.Status.Replicas, metav1.FormatLabelSelector(live.Spec.Selector)
	}
	if equality.Semantic.DeepEqual(before, now) {
		return nil
	}
	// What an apply leaves out is taken away, so all of it is in here. Conditions of others are theirs.
	status := cachev1alpha1ac.MemcachedStatus().WithServers(now.Servers).WithLabelSelector(now.LabelSelector)
	for i := range all {
		condition := meta.FindStatusCondition(now.Conditions, all[i].Type)
		status.WithConditions(metav1ac.Condition().
			WithType(condition.Type).
			WithStatus(condition.Status).
			WithObservedGeneration(condition.ObservedGeneration).
			WithLastTransitionTime(condition.LastTransitionTime).
			WithReason(condition.Reason).
			WithMessage(condition.Message))
	}
	// The version is that of the Memcached that was judged: news about an older one would be told twice.
	applied := cachev1alpha1ac.Memcached(memcached.Name, memcached.Namespace).
		WithUID(memcached.UID).
		WithResourceVersion(memcached.ResourceVersion).
		WithStatus(status)
	if err := r.Status().Apply(ctx, applied, client.FieldOwner(Owner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status: %w", err)
	}
	is, was := meta.FindStatusCondition(now.Conditions, "Degraded"), meta.FindStatusCondition(before.Conditions, "Degraded")
	if is.Status == metav1.ConditionTrue && (was == nil || was.Reason != is.Reason) {
		r.Events.Eventf(memcached, nil, corev1.EventTypeWarning, is.Reason, "ApplyDeployment", "%.1000s", is.Message)
	}
	return nil
}

// refused says that the API server does not want this Deployment, in contrast to not being able to answer.
func refused(err error) bool {
	return !leaving(err) && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err))
}

// leaving says that the namespace is being deleted, and everything in it.
func leaving(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

// catchUp is how long the cache may be behind the API server. Its watch event usually comes first.
const catchUp = time.Second

// result is what to return for the errors of a pass. That an object has changed meanwhile is none.
func result(errs ...error) (ctrl.Result, error) {
	err := errors.Join(errs...)
	switch {
	case err == nil, leaving(err), apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	default:
		return ctrl.Result{}, err
	}
}
