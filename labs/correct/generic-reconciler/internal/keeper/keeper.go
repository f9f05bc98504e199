// Package keeper is what every operator of the simplest sort has in common: for each object of one kind,
// its parent, it keeps one object of another kind under the same name, its child. What the two are, a
// [Recipe] says.
package keeper

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Recipe is what a [Keeper] has to know about parents P and children C, both pointers to structs.
type Recipe[P, C client.Object] interface {
	// Parent returns an empty parent.
	Parent() P
	// Child returns an empty child.
	Child() C
	// Shape sets what the child is to be, in a new one or in one that exists, and nothing else. It must
	// come to the same result each time.
	Shape(parent P, child C)
	// Judge says how a parent with this child is doing: Type, Status, Reason and Message.
	Judge(parent P, child C) metav1.Condition
	// Conditions is where the parent keeps its conditions.
	Conditions(parent P) *[]metav1.Condition
	// Story is what users are told about a change of the child from before to after; before is empty when
	// it was created. Without a reason nothing is told.
	Story(before, after C) (reason, note string)
}

// Keeper keeps the children of all parents. It gets the parent as an object, already read: that is what
// [reconcile.AsReconciler] adds.
type Keeper[P, C client.Object] struct {
	client client.Client
	events events.EventRecorder
	recipe Recipe[P, C]
	kind   schema.GroupVersionKind // of children
}

// Add starts a Keeper with the manager. A child has its parent's name, so that its own name says whom to
// wake, whoever owns it.
func Add[P, C client.Object](mgr manager.Manager, name string, recipe Recipe[P, C]) error {
	kind, err := mgr.GetClient().GroupVersionKindFor(recipe.Child())
	if err != nil {
		return fmt.Errorf("look up the kind of children: %w", err)
	}
	k := &Keeper[P, C]{client: mgr.GetClient(), events: mgr.GetEventRecorder(name), recipe: recipe, kind: kind}
	return builder.ControllerManagedBy(mgr).
		Named(name).
		For(recipe.Parent()).
		Watches(recipe.Child(), &handler.EnqueueRequestForObject{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), k))
}

// Reconcile keeps the child of one parent. A parent that is being deleted is the garbage collector's.
func (k *Keeper[P, C]) Reconcile(ctx context.Context, parent P) (reconcile.Result, error) {
	if parent.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	child, err := k.keep(ctx, parent)
	return outcome(err, k.report(ctx, parent, child, err))
}

// keep creates the child, or brings it back into shape, and returns it as it is now.
func (k *Keeper[P, C]) keep(ctx context.Context, parent P) (C, error) {
	child := k.recipe.Child()
	err := k.client.Get(ctx, client.ObjectKeyFromObject(parent), child)
	switch {
	case apierrors.IsNotFound(err):
		return k.create(ctx, parent)
	case err != nil:
		return child, fmt.Errorf("get %s: %w", k.kind.Kind, err)
	case !metav1.IsControlledBy(child, parent):
		return child, k.taken(parent, child)
	case child.GetDeletionTimestamp() != nil:
		return child, nil // Its end makes another pass.
	}
	return child, k.repair(ctx, parent, child)
}

func (k *Keeper[P, C]) create(ctx context.Context, parent P) (C, error) {
	child := k.recipe.Child()
	child.SetNamespace(parent.GetNamespace())
	child.SetName(parent.GetName())
	k.recipe.Shape(parent, child)
	if err := controllerutil.SetControllerReference(parent, child, k.client.Scheme()); err != nil {
		return child, err
	}
	if err := k.client.Create(ctx, child); err != nil {
		return child, fmt.Errorf("create %s: %w", k.kind.Kind, err)
	}
	k.tell(parent, k.recipe.Child(), child)
	return child, nil
}

// repair patches what differs from the recipe, and nothing but that.
func (k *Keeper[P, C]) repair(ctx context.Context, parent P, child C) error {
	before := child.DeepCopyObject().(C)
	k.recipe.Shape(parent, child)
	if equality.Semantic.DeepEqual(before, child) {
		return nil
	}
	if err := k.client.Patch(ctx, child, patch(before)); err != nil {
		return fmt.Errorf("patch %s: %w", k.kind.Kind, err)
	}
	k.tell(parent, before, child)
	return nil
}

// patch is the difference to before, for exactly the version of the object that was looked at.
func patch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (k *Keeper[P, C]) tell(parent P, before, after C) {
	if reason, note := k.recipe.Story(before, after); reason != "" {
		k.events.Eventf(parent, after, corev1.EventTypeNormal, reason, "Keep", "%s", note)
	}
}
