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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.org/raw/apis/cache/v1alpha1"
	"example.org/raw/internal/ledger"
)

// struckFirst is the finalizer: the line of a Memcached is struck out of the ledger before it goes.
const struckFirst = "raw.example.org/struck-first"

const (
	// clerks is how many names can wait for the ledger at the same time.
	clerks = 8
	// again is when a clerk looks after a line that is there, and soon when the ledger could not do what it was asked.
	again, soon = 4 * time.Second, 2 * time.Second
)

// file is what a clerk does with one name; it says whether there is going to be another. Clerks have a queue of their own, so
// that no Deployment ever waits for the ledger. A name that comes back while a clerk has it waits for him, so nothing is
// written after it was struck.
func (c *Controller) file(ctx context.Context) bool {
	key, down := c.lines.Get()
	if down {
		return false
	}
	defer c.lines.Done(key)
	memcached, err := c.memcacheds.Get(key)
	if err != nil {
		return true // It has gone, and its line before it.
	}
	promised, next := slices.Contains(memcached.Finalizers, struckFirst), time.Duration(0)
	switch {
	case memcached.DeletionTimestamp != nil && promised:
		err = c.strike(ctx, memcached)
	case memcached.DeletionTimestamp != nil, c.Ledger == "":
	case !promised: // The news of it bring the name back.
		err = c.promise(ctx, memcached, append(slices.Clone(memcached.Finalizers), struckFirst))
	default:
		next, err = again, c.write(ctx, memcached)
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("The ledger has to wait", "memcached", key, "why", err)
		next = soon // It does not grow: whoever waits longer each time comes late when the ledger is back.
	}
	if next > 0 {
		c.lines.AddAfter(key, next) // A name waits once, until the earliest time that it was given.
	}
	return true
}

// write writes the line. One that was refused is not sent again before the user has changed the Memcached. What the ledger
// said, a worker writes into the status with all else.
func (c *Controller) write(ctx context.Context, memcached *v1alpha1.Memcached) error {
	claim := metav1.Condition{Type: "Registered", Status: metav1.ConditionFalse, Reason: "LineRejected",
		Message: ledger.ErrNever.Error(), ObservedGeneration: memcached.Generation}
	last, _ := c.claims.Load(memcached.UID)
	if last == claim {
		return nil
	}
	switch err := c.Ledger.Write(ctx, memcached.UID, ledger.Line{
		Namespace: memcached.Namespace, Name: memcached.Name, Size: memcached.Spec.Size,
	}); {
	case errors.Is(err, ledger.ErrNever):
		c.Events.Eventf(memcached, nil, corev1.EventTypeWarning, claim.Reason, "Write", "%v", err)
	case err != nil:
		return err // What was said before is still the best that is known.
	default:
		claim.Status, claim.Reason, claim.Message = metav1.ConditionTrue, "LineWritten", ""
	}
	if last != claim {
		c.claims.Store(memcached.UID, claim)
		c.enqueue(memcached)
	}
	return nil
}

// strike takes the line out of the ledger, and then lets the Memcached go. If the program is killed in between, it strikes
// once more. One that has no ledger has nothing to strike.
func (c *Controller) strike(ctx context.Context, memcached *v1alpha1.Memcached) error {
	if c.Ledger != "" {
		if err := c.Ledger.Strike(ctx, memcached.UID); err != nil {
			return err
		}
	}
	c.claims.Delete(memcached.UID)
	return c.promise(ctx, memcached, slices.DeleteFunc(slices.Clone(memcached.Finalizers), func(f string) bool { return f == struckFirst }))
}

// promise sends the finalizers, if they still are what they were: others have theirs in the same list. A status that was
// written meanwhile does no harm.
func (c *Controller) promise(ctx context.Context, memcached *v1alpha1.Memcached, finalizers []string) error {
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

// enqueueLine has a clerk look after a Memcached.
func (c *Controller) enqueueLine(obj any) {
	if key, err := cache.DeletionHandlingObjectToName(obj); err == nil { // enqueue says so if not
		c.lines.Add(key)
	}
}
