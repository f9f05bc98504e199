package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.org/raw/apis/cache/v1alpha1"
	"example.org/raw/internal/registry"
)

// finalizer keeps a Memcached until its entry is deleted from the registry.
const finalizer = "raw.example.org/registry-entry"

const (
	// registryWorkers is how many names can wait for the registry at the same time.
	registryWorkers = 8
	// resyncPeriod is the time until an entry is written again, retryPeriod that after an error.
	resyncPeriod, retryPeriod = 4 * time.Second, 2 * time.Second
)

// nextEntry takes one name off the queue of the registry; it returns false when the queue is shut down. This queue has workers
// of its own, so that no Deployment ever waits for the registry. One worker at a time has a name, so no entry is written after
// it was deleted.
func (c *Controller) nextEntry(ctx context.Context) bool {
	key, down := c.entries.Get()
	if down {
		return false
	}
	defer c.entries.Done(key)
	memcached, err := c.memcacheds.Get(key)
	if err != nil {
		return true // It has gone, and its entry before it.
	}
	hasFinalizer, next := slices.Contains(memcached.Finalizers, finalizer), time.Duration(0)
	switch {
	case memcached.DeletionTimestamp != nil && hasFinalizer:
		err = c.deleteEntry(ctx, memcached)
	case memcached.DeletionTimestamp != nil, c.Registry == "":
	case !hasFinalizer: // The watch event of this patch enqueues the name again.
		err = c.patchFinalizers(ctx, memcached, append(slices.Clone(memcached.Finalizers), finalizer))
	default:
		next, err = resyncPeriod, c.putEntry(ctx, memcached)
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("Failed to update the registry", "memcached", key, "error", err)
		next = retryPeriod // A period that grows would be too long when the registry is back.
		if memcached.DeletionTimestamp != nil {
			wanted := memcached.DeepCopy()
			meta.SetStatusCondition(&wanted.Status.Conditions, either("Degraded", true, "the registry holds up the deletion", memcached))
			_ = c.writeStatus(ctx, memcached, wanted) // It is tried again with the entry.
		}
	}
	if next > 0 {
		c.entries.AddAfter(key, next) // A name that is added twice waits until the earlier time.
	}
	return true
}

// putEntry writes the entry. One that was rejected is not sent again before the user has changed the Memcached. The other
// workers write the condition into the status.
func (c *Controller) putEntry(ctx context.Context, memcached *v1alpha1.Memcached) error {
	registered := metav1.Condition{Type: "Registered", Status: metav1.ConditionFalse, Reason: "EntryRejected",
		Message: registry.ErrRejected.Error(), ObservedGeneration: memcached.Generation}
	last, _ := c.registered.Load(memcached.UID)
	if last == registered {
		return nil
	}
	switch err := c.Registry.Put(ctx, memcached.UID, registry.Entry{
		Namespace: memcached.Namespace, Name: memcached.Name, Size: memcached.Spec.Size,
	}); {
	case errors.Is(err, registry.ErrRejected):
		c.Events.Eventf(memcached, nil, corev1.EventTypeWarning, registered.Reason, "Register", "%v", err)
	case err != nil:
		return err // The condition stays as it was.
	default:
		registered.Status, registered.Reason, registered.Message = metav1.ConditionTrue, "EntryWritten", ""
	}
	if last != registered {
		c.registered.Store(memcached.UID, registered)
		c.enqueue(memcached)
	}
	return nil
}

// deleteEntry deletes the entry from the registry, and then removes the finalizer. If the program is killed in between, it
// deletes the entry once more.
func (c *Controller) deleteEntry(ctx context.Context, memcached *v1alpha1.Memcached) error {
	if c.Registry != "" {
		if err := c.Registry.Delete(ctx, memcached.UID); err != nil {
			return err
		}
	}
	c.registered.Delete(memcached.UID)
	return c.patchFinalizers(ctx, memcached, slices.DeleteFunc(slices.Clone(memcached.Finalizers), func(f string) bool { return f == finalizer }))
}

// patchFinalizers replaces the finalizers if nobody has changed the list since it was read.
func (c *Controller) patchFinalizers(ctx context.Context, memcached *v1alpha1.Memcached, finalizers []string) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": memcached.UID},
		{"op": "test", "path": "/metadata/finalizers", "value": memcached.Finalizers},
		{"op": "add", "path": "/metadata/finalizers", "value": finalizers},
	})
	if err != nil {
		return err
	}
	_, err = c.Memcacheds.In(memcached.Namespace).Patch(ctx, memcached.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch finalizers: %w", err)
	}
	return nil
}

// enqueueEntry adds a Memcached to the queue of the registry.
func (c *Controller) enqueueEntry(obj any) {
	if key, err := cache.DeletionHandlingObjectToName(obj); err == nil { // enqueue says so if not
		c.entries.Add(key)
	}
}
