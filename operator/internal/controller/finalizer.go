// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

// lab:10 begin register

const (
	// finalizer keeps a Memcached there until its entry in the registry is gone.
	finalizer = "cache.example.com/registry"
	// lookAgain is how often the registry is looked after.
	lookAgain = 5 * time.Second
	// workers is how many Memcacheds are worked on at a time; one of them never twice.
	workers = 8
)

// errRegistry is the cause of what goes wrong with the registry, and may go well the
// next time. A refusal, which will not, is registry.ErrRefused.
var errRegistry = errors.New("not in the registry")

// unregistered tells whether something is wrong with the registry.
func unregistered(failure error) bool {
	return errors.Is(failure, errRegistry) || errors.Is(failure, registry.ErrRefused)
}

// register gives memcached its entry in the registry: the finalizer first, then the
// entry. An entry that was refused is tried again when the spec changes.
func (r *MemcachedReconciler) register(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if r.Registry == nil {
		return nil
	}
	if last := meta.FindStatusCondition(memcached.Status.Conditions, conditionRegistered); last != nil &&
		last.Reason == reasonRefused && last.ObservedGeneration == memcached.Generation {
		return registry.ErrRefused
	}
	if !controllerutil.ContainsFinalizer(memcached, finalizer) {
		before := memcached.DeepCopy()
		controllerutil.AddFinalizer(memcached, finalizer)
		if err := r.Patch(ctx, memcached, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("%w: add finalizer: %w", errRegistry, err)
		}
	}
	err := r.Registry.Put(ctx, string(memcached.UID), registry.Entry{
		Namespace: memcached.Namespace, Name: memcached.Name, Size: memcached.Spec.Size,
	})
	if err != nil && !errors.Is(err, registry.ErrRefused) {
		return fmt.Errorf("%w: %w", errRegistry, err)
	}
	return err
}

// lab:10 end

// lab:10 begin finalize

// finalize takes the entry of a Memcached that is being deleted out of the
// registry, and then lets it go.
func (r *MemcachedReconciler) finalize(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !controllerutil.ContainsFinalizer(memcached, finalizer) {
		return nil // it was never there, or is not any more
	}
	if r.Registry == nil {
		return fmt.Errorf("%w: REGISTRY_URL is not set, and the entry of %s is still there", errRegistry, memcached.Name)
	}
	if err := r.Registry.Delete(ctx, string(memcached.UID)); err != nil {
		return fmt.Errorf("%w: %w", errRegistry, err)
	}
	before := memcached.DeepCopy()
	controllerutil.RemoveFinalizer(memcached, finalizer)
	err := r.Patch(ctx, memcached, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return client.IgnoreNotFound(err)
}

// lab:10 end

// lab:10 begin registered

const (
	// conditionRegistered is the type of the condition that says whether the registry has the entry.
	conditionRegistered = "Registered"
	// reasonRefused is its reason when the registry will not take the entry as it is.
	reasonRefused = "Refused"
)

// registered returns the condition Registered.
func registered(memcached *cachev1alpha1.Memcached, failure error) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionRegistered,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: memcached.Generation,
	}
	switch {
	case errors.Is(failure, registry.ErrRefused):
		condition.Reason, condition.Message = reasonRefused, failure.Error()
	case errors.Is(failure, errRegistry):
		condition.Reason, condition.Message = "RegistryAway", failure.Error()
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, "Registered"
	}
	return condition
}

// lab:10 end
