package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reasons of the condition that are no recipe's.
const (
	reasonReplaced = "PredecessorLeaving"
	reasonTaken    = "ChildTaken"
	reasonRefused  = "ChildRefused"
)

// takenError means that there is an object of the child's name, and the parent is not its controller.
type takenError struct{ reason, message string }

func (e takenError) Error() string { return e.message }

// taken says whose object is in the way. That of an earlier parent of this name goes by itself.
func (k *Keeper[P, C]) taken(parent P, child C) error {
	name, owner := child.GetName(), metav1.GetControllerOf(child)
	if owner == nil {
		return takenError{reasonTaken, fmt.Sprintf("%s %s was there before, and nobody controls it", k.kind.Kind, name)}
	}
	reason := reasonTaken
	if kind, err := k.client.GroupVersionKindFor(parent); err == nil && owner.Kind == kind.Kind && owner.Name == parent.GetName() {
		reason = reasonReplaced
	}
	return takenError{reason, fmt.Sprintf("%s %s is controlled by %s %s, uid %s", k.kind.Kind, name, owner.Kind, owner.Name, owner.UID)}
}

// report writes how the parent is doing, if that is news, and warns when a failure begins.
func (k *Keeper[P, C]) report(ctx context.Context, parent P, child C, failure error) error {
	condition := k.recipe.Judge(parent, child)
	condition.ObservedGeneration = parent.GetGeneration()
	if failure != nil {
		reason := reasonOf(failure)
		if reason == "" {
			return nil // Not for users: the next pass knows more.
		}
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, failure.Error()
	}
	before := parent.DeepCopyObject().(P)
	if !meta.SetStatusCondition(k.recipe.Conditions(parent), condition) {
		return nil
	}
	if err := k.client.Status().Patch(ctx, parent, patch(before)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	last := meta.FindStatusCondition(*k.recipe.Conditions(before), condition.Type)
	if warns(condition.Reason) && (last == nil || last.Reason != condition.Reason) {
		k.events.Eventf(parent, nil, corev1.EventTypeWarning, condition.Reason, "Keep", "%.1000s", condition.Message)
	}
	return nil
}

func warns(reason string) bool { return reason == reasonTaken || reason == reasonRefused }

// reasonOf is the reason under which a failure is told to users, "" when it is not their business: that
// nobody answers, or that somebody was faster.
func reasonOf(failure error) string {
	var taken takenError
	switch {
	case errors.As(failure, &taken):
		return taken.reason
	case leaving(failure):
		return ""
	case apierrors.IsForbidden(failure), apierrors.IsInvalid(failure), apierrors.IsBadRequest(failure):
		return reasonRefused
	default:
		return ""
	}
}

// leaving means that the whole namespace is being deleted.
func leaving(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

// soon is when to look again after somebody was faster.
const soon = time.Second

// outcome is the result of a pass.
func outcome(kept, reported error) (reconcile.Result, error) {
	if errors.As(kept, new(takenError)) {
		kept = nil // Nothing to try again: the end of what is in the way makes another pass.
	}
	err := errors.Join(kept, reported)
	switch {
	case err == nil, leaving(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: soon}, nil
	default:
		return reconcile.Result{}, err
	}
}
