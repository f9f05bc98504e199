// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

// lab:10 begin register

const (
	// finalizer keeps a Memcached in the cluster until its entry in the registry is deleted.
	finalizer = "cache.example.com/registry"
	// resyncInterval is how often each entry is written again.
	resyncInterval = 5 * time.Second
	// workers is how many Memcacheds are reconciled at a time; one of them never twice.
	workers = 8
)

// register gives memcached its entry in the registry: the finalizer first, then the
// entry. An entry that was refused is tried again when the spec changes.
func (r *MemcachedReconciler) register(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if r.Registry == nil {
		return nil
	}
	if last := meta.FindStatusCondition(memcached.Status.Conditions, conditionRegistered); last != nil &&
		last.Reason == reasonRegistryRefused && last.ObservedGeneration == memcached.Generation {
		return &terminalError{last.Reason, last.Message}
	}
	if !controllerutil.ContainsFinalizer(memcached, finalizer) {
		before := memcached.DeepCopy()
		controllerutil.AddFinalizer(memcached, finalizer)
		if err := r.Patch(ctx, memcached, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("add finalizer: %w", err)
		}
	}
	err := r.Registry.Put(ctx, string(memcached.UID), registry.Entry{
		Namespace: memcached.Namespace, Name: memcached.Name, Size: memcached.Spec.Size,
	})
	if errors.Is(err, registry.ErrRefused) {
		return &terminalError{reasonRegistryRefused, err.Error()}
	}
	return err
}

// lab:10 end

// lab:10 begin finalize

// finalize deletes the entry of a Memcached that is being deleted, and then
// removes the finalizer, which ends the deletion.
func (r *MemcachedReconciler) finalize(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !controllerutil.ContainsFinalizer(memcached, finalizer) {
		return nil // It was never added, or is removed already.
	}
	if r.Registry == nil {
		return fmt.Errorf("%w: REGISTRY_URL is not set, and there may be an entry", registry.ErrUnavailable)
	}
	if err := r.Registry.Delete(ctx, string(memcached.UID)); err != nil {
		return err
	}
	before := memcached.DeepCopy()
	controllerutil.RemoveFinalizer(memcached, finalizer)
	if err := r.Patch(ctx, memcached, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// reportStuckDeletion reports in Degraded, and in a Warning, that err holds up the
// deletion of memcached. The other conditions stay as the last pass left them.
func (r *MemcachedReconciler) reportStuckDeletion(ctx context.Context, memcached *cachev1alpha1.Memcached, err error) (ctrl.Result, error) {
	o := outcome{registryErr: err}
	if !o.isStale() {
		before := memcached.Status.DeepCopy()
		meta.SetStatusCondition(&memcached.Status.Conditions, degraded(memcached, o))
		o.statusErr = r.writeStatus(ctx, memcached, before)
	}
	return r.resultFor(o)
}

// lab:10 end

// lab:10 begin registered

// conditionRegistered is the type of the condition that says whether the registry has the entry.
const conditionRegistered = "Registered"

// registered returns the condition Registered.
func registered(memcached *cachev1alpha1.Memcached, o outcome) metav1.Condition {
	condition := metav1.Condition{
		Type:               conditionRegistered,
		Status:             metav1.ConditionTrue,
		Reason:             "Registered",
		ObservedGeneration: memcached.Generation,
	}
	if o.registryErr != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonOf(o.registryErr), o.registryErr.Error()
	}
	return condition
}

// lab:10 end
