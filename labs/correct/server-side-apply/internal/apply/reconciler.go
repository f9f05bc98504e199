// Package apply keeps a Deployment and a Service for each Memcached by server-side apply: it sends the fields that it sets, and
// the API server merges them and remembers which manager owns which field.
package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
)

// Owner is the field manager under which everything is applied. It must never change: what an earlier
// name has applied would stay behind.
const Owner = "memcached-operator"

// Reconciler keeps the Deployment and the status of a Memcached.
type Reconciler struct {
	client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Events tells users what was done.
	Events events.EventRecorder
	// Image is what memcached runs from.
	Image string
	// Registry is where Memcacheds are registered; nil is nowhere.
	Registry *Registry
}

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager starts the controller with mgr. A Deployment has the name of its Memcached, and so has a
// Service. So its own name says which Memcached to reconcile, if there is one, also when it is somebody else's or just deleted.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &cachev1alpha1.Memcached{}, byConfigMap, configMapOf); err != nil {
		return fmt.Errorf("index Memcacheds: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr)
	if r.Registry != nil {
		queue := make(chan event.GenericEvent)
		resync := manager.RunnableFunc(func(ctx context.Context) error { return r.resync(ctx, queue) })
		if err := mgr.Add(resync); err != nil {
			return fmt.Errorf("add the resync: %w", err)
		}
		b.WatchesRawSource(source.Channel(queue, &handler.EnqueueRequestForObject{}))
	}
	ofMemcached := builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return r.Get(context.Background(), client.ObjectKeyFromObject(obj), &cachev1alpha1.Memcached{}) == nil
	}))
	return b.Named("memcached").
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}). // for a pass may wait for the registry
		For(&cachev1alpha1.Memcached{}).
		Watches(&appsv1.Deployment{}, &handler.EnqueueRequestForObject{}, ofMemcached).
		Watches(&corev1.Service{}, &handler.EnqueueRequestForObject{}, ofMemcached).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.readersOf)).
		Complete(r)
}

// Reconcile brings the objects of one Memcached to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !memcached.DeletionTimestamp.IsZero() {
		return result(r.unregister(ctx, memcached))
	}
	if r.Registry != nil && !controllerutil.ContainsFinalizer(memcached, finalizer) {
		return result(r.applyFinalizer(ctx, memcached)) // Its watch event starts the next pass.
	}
	options, missing, err := r.options(ctx, memcached)
	if err != nil {
		return ctrl.Result{}, err
	}
	problem, later := r.applyService(ctx, memcached)
	problems := join(missing, problem)
	live, err := r.deployment(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("get Deployment: %w", err)
	}
	if live != nil && !metav1.IsControlledBy(live, memcached) {
		return result(r.report(ctx, memcached, nil, nameTaken(memcached, live), problems), later)
	}
	if missing == "" { // else what is there has the last options that were good
		if err := r.apply(ctx, memcached, live, options); err != nil {
			if refused(err) {
				return result(r.report(ctx, memcached, nil, refusal(err), problems), err, later)
			}
			return result(err, later)
		}
	}
	return result(r.report(ctx, memcached, live, count(memcached, live), problems), later)
}

// deployment reads the Deployment; it is nil when there is none.
func (r *Reconciler) deployment(ctx context.Context, key client.ObjectKey) (*appsv1.Deployment, error) {
	live := &appsv1.Deployment{}
	if there, err := r.read(ctx, key, live); !there {
		return nil, err
	}
	return live, nil
}

// read reads an object that may not be there. The cache may not have one yet that was created a moment ago, so the API server
// is asked, too: each creation makes one event.
func (r *Reconciler) read(ctx context.Context, key client.ObjectKey, live client.Object) (there bool, _ error) {
	err := r.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, live)
	}
	return err == nil, client.IgnoreNotFound(err)
}

// apply sends what is wanted, unless all of it has been applied already and is still ours. A field that
// somebody else has changed since is theirs, hence missing from what is ours, and is taken back.
func (r *Reconciler) apply(ctx context.Context, memcached *cachev1alpha1.Memcached, live *appsv1.Deployment, options []string) error {
	want := wanted(memcached, r.Image, options...)
	if live != nil {
		ours, err := appsv1ac.ExtractDeployment(live, Owner)
		if err != nil {
			return fmt.Errorf("read who owns the Deployment's fields: %w", err)
		}
		if equality.Semantic.DeepEqual(ours, want) || !live.DeletionTimestamp.IsZero() {
			return nil
		}
		// Without these two, an apply would also hit a Deployment that is not the one that was looked at.
		want.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	}
	if err := r.Apply(ctx, want, client.FieldOwner(Owner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Deployment: %w", err)
	}
	r.record(memcached, live)
	return nil
}

// record records an event about what an apply has done to the Deployment that was there before, if one was.
func (r *Reconciler) record(memcached *cachev1alpha1.Memcached, before *appsv1.Deployment) {
	size := memcached.Spec.Size
	switch {
	case before == nil:
		r.Events.Eventf(memcached, nil, corev1.EventTypeNormal, "Started", "ApplyDeployment", "Started %d servers", size)
	case before.Spec.Replicas != nil && *before.Spec.Replicas != size:
		r.Events.Eventf(memcached, before, corev1.EventTypeNormal, "Resized", "ApplyDeployment",
			"Resized from %d servers to %d", *before.Spec.Replicas, size)
	}
}
