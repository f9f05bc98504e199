// Package controllers keeps the servers that Memcacheds ask for.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cache "example.org/caching/pkg/apis/cache/v1alpha1"
)

// farewell is held until the end of a Memcached was announced.
const farewell = "caching.example.org/farewell"

// portVariable tells the servers where to listen.
const portVariable = "CACHE_PORT"

// Keeper is the reconciler.
type Keeper struct {
	client.Client
	Recorder record.EventRecorder
	Image    string
}

// Register starts the controller with the manager.
func (k *Keeper) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("cache-keeper").
		For(&cache.Memcached{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Complete(k)
}

// Reconcile makes one Memcached true.
func (k *Keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mc cache.Memcached
	if err := k.Get(ctx, req.NamespacedName, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !mc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, k.sayGoodbye(ctx, &mc)
	}
	if !controllerutil.ContainsFinalizer(&mc, farewell) {
		before := mc.DeepCopy()
		controllerutil.AddFinalizer(&mc, farewell)
		if err := k.Patch(ctx, &mc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, err
		}
	}
	servers := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mc.Namespace, Name: mc.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, k.Client, servers, func() error { return k.shape(&mc, servers) })
	var taken *controllerutil.AlreadyOwnedError
	switch {
	case errors.As(err, &taken):
		k.Recorder.Eventf(&mc, corev1.EventTypeWarning, "NameTaken", "Deployment %s is in the hands of %s %s", mc.Name, taken.Owner.Kind, taken.Owner.Name)
		return ctrl.Result{}, k.report(ctx, &mc, metav1.ConditionFalse, "NameTaken", fmt.Sprintf("there is another Deployment %q, of %s", mc.Name, taken.Owner.Name))
	case err != nil:
		return ctrl.Result{}, err
	case done == controllerutil.OperationResultCreated:
		k.Recorder.Event(&mc, corev1.EventTypeNormal, "ServersOrdered", "ordered a Deployment")
	case done == controllerutil.OperationResultUpdated:
		k.Recorder.Event(&mc, corev1.EventTypeNormal, "ServersAdjusted", "changed the Deployment")
	}
	return ctrl.Result{}, k.judge(ctx, &mc, servers)
}

// sayGoodbye lets a deleted Memcached go; its Deployment is the garbage collector's.
func (k *Keeper) sayGoodbye(ctx context.Context, mc *cache.Memcached) error {
	before := mc.DeepCopy()
	if !controllerutil.RemoveFinalizer(mc, farewell) {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Goodbye", "servers", mc.Spec.Size)
	return client.IgnoreNotFound(k.Patch(ctx, mc, client.MergeFrom(before)))
}

// shape sets what is ours in a Deployment, and leaves the rest to whoever set it.
func (k *Keeper) shape(mc *cache.Memcached, d *appsv1.Deployment) error {
	mine := map[string]string{"caching.example.org/part-of": mc.Name, "caching.example.org/role": "server"}
	if d.CreationTimestamp.IsZero() {
		d.Labels = mine
		d.Spec.Selector = metav1.SetAsLabelSelector(mine)
		d.Spec.Template.Labels = mine
	}
	d.Spec.Replicas = ptr.To(mc.Spec.Size)
	pod := &d.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = ptr.To[int64](5)
	if len(pod.Containers) != 1 {
		pod.Containers = []corev1.Container{{Name: "server"}}
	}
	c := &pod.Containers[0]
	c.Image = k.Image
	c.Command = []string{"memcached", "--port=$(" + portVariable + ")", "--memory-limit=16"}
	c.Env = []corev1.EnvVar{{Name: portVariable, Value: strconv.Itoa(int(mc.Spec.ContainerPort))}}
	c.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false)}
	return controllerutil.SetControllerReference(mc, d, k.Scheme(), controllerutil.WithBlockOwnerDeletion(false))
}

// judge tells what the Deployment has achieved.
func (k *Keeper) judge(ctx context.Context, mc *cache.Memcached, d *appsv1.Deployment) error {
	have, want := d.Status.AvailableReplicas, mc.Spec.Size
	if have == want && d.Status.ObservedGeneration == d.Generation {
		return k.report(ctx, mc, metav1.ConditionTrue, "EverybodyServes", fmt.Sprintf("%d of %d", have, want))
	}
	return k.report(ctx, mc, metav1.ConditionFalse, "SomeAreMissing", fmt.Sprintf("%d of %d", have, want))
}

// report writes the condition, if it is news.
func (k *Keeper) report(ctx context.Context, mc *cache.Memcached, status metav1.ConditionStatus, reason, message string) error {
	news := metav1.Condition{
		Type: "Available", Status: status, Reason: reason, Message: message,
		ObservedGeneration: mc.Generation, LastTransitionTime: metav1.Now(),
	}
	for _, old := range mc.Status.Conditions {
		if old.Type == news.Type && old.Status == news.Status {
			news.LastTransitionTime = old.LastTransitionTime
			if old == news {
				return nil
			}
		}
	}
	before := mc.DeepCopy()
	mc.Status.Conditions = []metav1.Condition{news}
	return k.Status().Patch(ctx, mc, client.MergeFrom(before), client.FieldOwner("cache-keeper"))
}
