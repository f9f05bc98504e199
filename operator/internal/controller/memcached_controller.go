// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

// MemcachedReconciler gives every Memcached its Deployment and keeps it as the
// Memcached's spec wants it.
type MemcachedReconciler struct {
	client.Client
	Scheme *runtime.Scheme

	// lab:4 begin image-field Add the image of memcached.

	// Image is the container image that memcached runs from. It must not be empty.
	Image string

	// lab:4 end

	// lab:6 begin recorder-field Add an event recorder.

	// Recorder tells users, in events on their Memcached, what was done for it.
	Recorder events.EventRecorder

	// lab:6 end

	// lab:10 begin registry-field Add the registry, which may be nil.

	// Registry is where Memcacheds are registered; nil is nowhere.
	Registry *registry.Client

	// lab:10 end
}

// lab:7 begin rbac-markers Say in markers what the manager has to be allowed, and nothing more.

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// lab:7 end

// lab:9 begin more-markers Say what the manager has to be allowed for Services and ConfigMaps.

// +kubebuilder:rbac:groups=core,resources=services,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=core,resources=configmaps,verbs=get;list;watch

// lab:9 end

// lab:10 begin finalizer-markers Say that the manager has to be allowed to change the metadata of Memcacheds.

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=patch

// lab:10 end

// Reconcile brings one Memcached's Deployment to what its spec asks for.
//
// It learns which Memcached to look at, never what happened to it. So it
// compares the whole of what is with the whole of what should be, and a change
// made while nobody was watching is as good as any other.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// lab:4 begin reconcile Fetch the Memcached and make its Deployment what the spec asks for.

	// lab:4 begin fetch Fetch the Memcached that req names. If it is gone, there is nothing to do.
	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		// lab:11 begin delete-series End the series of a Memcached that is gone.
		if apierrors.IsNotFound(err) {
			availableReplicas.DeleteLabelValues(req.Namespace, req.Name)
		}
		// lab:11 end
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// lab:4 end

	// lab:5 begin deletion Leave a Memcached that is being deleted to the garbage collector.
	if !memcached.DeletionTimestamp.IsZero() {
		// lab:10 begin finalize-first Delete its entry in the registry, and report what holds that up.
		if err := r.finalize(ctx, memcached); err != nil {
			return r.reportStuckDeletion(ctx, memcached, err)
		}
		// lab:10 end
		// In a foreground deletion the Deployment goes first. Whoever brings it
		// back now works against the garbage collector.
		return ctrl.Result{}, nil
	}
	// lab:5 end

	// lab:5 begin ensure-and-report Report in the status what the pass found.
	o := outcome{}
	o.deployment, o.deploymentErr = r.ensureDeployment(ctx, memcached)
	// lab:9 begin ensure-service-too Tell an invalid ConfigMap from a failed Deployment. Then ensure the Service, in any case.
	if reasonOf(o.deploymentErr) == reasonConfigMapInvalid {
		o.deploymentErr, o.optionsErr = nil, o.deploymentErr
	}
	o.serviceErr = r.ensureService(ctx, memcached)
	// lab:9 end
	// lab:10 begin register-too Then ensure its entry in the registry.
	o.registryErr = r.register(ctx, memcached)
	// lab:10 end
	if !o.isStale() {
		o.statusErr = r.updateStatus(ctx, memcached, o)
	}
	// lab:11 begin set-series Set its series of the metric.
	if o.deployment != nil { // else the last known value stays
		availableReplicas.WithLabelValues(req.Namespace, req.Name).Set(float64(o.deployment.Status.AvailableReplicas))
	}
	// lab:11 end
	return r.resultFor(o)
	// lab:5 before
	// _, err := r.ensureDeployment(ctx, memcached)
	// return ctrl.Result{}, err
	// lab:5 end

	// lab:4 before
	// return ctrl.Result{}, nil
	// lab:4 end
}

// lab:4 begin deployment Create the Deployment if there is none, else update it if that changes anything.

// lab:4 begin ensure

// ensureDeployment returns the Deployment of memcached as it stands after what
// had to be done to it: create it, change it, or nothing.
func (r *MemcachedReconciler) ensureDeployment(ctx context.Context, memcached *cachev1alpha1.Memcached) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)
	if apierrors.IsNotFound(err) {
		return r.createDeployment(ctx, memcached)
	}
	if err != nil {
		return nil, fmt.Errorf("get Deployment: %w", err)
	}
	return r.updateDeployment(ctx, memcached, deployment)
}

// lab:4 end

// lab:4 begin create

// createDeployment creates the Deployment of memcached.
func (r *MemcachedReconciler) createDeployment(ctx context.Context, memcached *cachev1alpha1.Memcached) (*appsv1.Deployment, error) {
	deployment := newDeployment(memcached)
	mutateDeployment(deployment, memcached, r.Image)

	// lab:9 begin configure-new Give it the options of the ConfigMap.
	if err := r.configure(ctx, memcached, deployment); err != nil {
		return nil, err
	}
	// lab:9 end

	// lab:5 begin own Make the Memcached the controller of the Deployment.
	if err := controllerutil.SetControllerReference(memcached, deployment, r.Scheme); err != nil {
		return nil, err
	}
	// lab:5 end

	if err := r.Create(ctx, deployment); err != nil {
		return nil, fmt.Errorf("create Deployment: %w", err)
	}
	logf.FromContext(ctx).Info("Created Deployment", "replicas", memcached.Spec.Size)

	// lab:6 begin created-event Tell that the Deployment was created.
	r.Recorder.Eventf(memcached, deployment, corev1.EventTypeNormal, "Created", "CreateDeployment",
		"Created Deployment %s of size %d", deployment.Name, memcached.Spec.Size)
	// lab:6 end

	return deployment, nil
}

// lab:4 end

// lab:4 begin update

// updateDeployment makes the existing Deployment what memcached asks for. It
// sends nothing to the API server when there is nothing to change.
func (r *MemcachedReconciler) updateDeployment(ctx context.Context, memcached *cachev1alpha1.Memcached, current *appsv1.Deployment) (*appsv1.Deployment, error) {
	// lab:5 begin own-existing Leave the Deployment alone if it is someone else's.
	if err := checkOwner(memcached, current); err != nil {
		return nil, err
	}
	// lab:5 end

	wanted := current.DeepCopy()
	mutateDeployment(wanted, memcached, r.Image)

	// lab:9 begin configure-existing Give it the options of the ConfigMap, or leave it as it is.
	if err := r.configure(ctx, memcached, wanted); err != nil {
		return current, err
	}
	// lab:9 end

	if equality.Semantic.DeepEqual(current, wanted) {
		return current, nil
	}

	// The update carries the resourceVersion of the Deployment that was read. If
	// someone has changed it since, the API server answers with a conflict and
	// the next pass looks again.
	if err := r.Update(ctx, wanted); err != nil {
		return nil, fmt.Errorf("update Deployment: %w", err)
	}
	logf.FromContext(ctx).Info("Updated Deployment", "replicas", memcached.Spec.Size)

	// lab:6 begin scaled-event Tell about a scaling once it is done.
	if from, to := replicas(current), memcached.Spec.Size; from != to {
		r.Recorder.Eventf(memcached, wanted, corev1.EventTypeNormal, "Scaled", "ScaleDeployment",
			"Scaled Deployment %s from %d to %d", wanted.Name, from, to)
	}
	// lab:6 end

	return wanted, nil
}

// lab:4 end

// lab:4 end

// lab:5 begin ownership Tell a Deployment of this Memcached from someone else's.

// lab:5 begin check-owner

// checkOwner returns an error unless memcached controls deployment. It compares
// UIDs: an earlier Memcached may have had the same name. The garbage collector
// deletes the Deployment of that one, and the next pass creates another.
func checkOwner(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) error {
	if metav1.IsControlledBy(deployment, memcached) {
		return nil
	}
	message := fmt.Sprintf("Deployment %s exists already and has no controller", deployment.Name)
	if owner := metav1.GetControllerOf(deployment); owner != nil {
		message = fmt.Sprintf("Deployment %s exists already and is controlled by %s %s", deployment.Name, owner.Kind, owner.Name)
	}
	return &terminalError{reasonDeploymentConflict, message}
}

// lab:5 end

// lab:5 begin map-to-same-name

// mapToSameName maps an object to the Memcached of the same name, if there is one
// that does not control it: it may wait for the name. Owns reports all other objects.
func (r *MemcachedReconciler) mapToSameName(ctx context.Context, obj client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(obj)
	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, key, memcached); err != nil || metav1.IsControlledBy(obj, memcached) {
		return nil // A new Memcached gets its first pass in any case.
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// lab:5 end

// lab:5 begin frees-name

// freesName accepts the events that may free a name: the object is deleted, or
// its owners change.
func freesName() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
		},
	}
}

// lab:5 end

// lab:5 end

// SetupWithManager registers the controller with mgr, which then calls Reconcile
// for every Memcached that changes.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	// lab:4 begin require-image Return an error when there is no image.
	if r.Image == "" {
		return errors.New("no image for memcached: set the environment variable MEMCACHED_IMAGE")
	}
	// lab:4 end
	// lab:9 begin index Index Memcacheds by the ConfigMap that they name.
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &cachev1alpha1.Memcached{}, optionsField, optionsOf); err != nil {
		return fmt.Errorf("index Memcacheds by %s: %w", optionsField, err)
	}
	// lab:9 end
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1alpha1.Memcached{}).
		// lab:5 begin owns Watch the Deployments that a Memcached owns.
		Owns(&appsv1.Deployment{}).
		// lab:5 end
		// lab:5 begin watch-foreign Watch for the end of someone else's Deployment.
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.mapToSameName), builder.WithPredicates(freesName())).
		// lab:5 end
		// lab:9 begin watch-more Watch Services, its own and those of others, and the ConfigMaps that a Memcached names.
		Owns(&corev1.Service{}).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.mapToSameName), builder.WithPredicates(freesName())).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.mapConfigMapToMemcacheds)).
		// lab:9 end
		// lab:10 begin workers Let a slow registry hold up one worker of several.
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		// lab:10 end
		Named("memcached").
		Complete(r)
}
