// Package operator keeps a Deployment for each Memcached with controllerutil.CreateOrUpdate: one function
// shapes a Deployment, whether it is new or was found, and the library sees what has to be sent.
package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.org/caches/pkg/apis/cache/v1alpha1"
)

// finalizer keeps a deleted Memcached until its end was told. An operator with something outside of the
// cluster to clear away, such as a DNS record, would clear it away before it lets go.
const finalizer = "cache.example.com/farewell"

// Operator is the reconciler of Memcacheds.
type Operator struct {
	client client.Client
	// uncached is asked where an answer of yesterday would do harm.
	uncached client.Reader
	recorder record.EventRecorder
	image    string
}

// AddToManager starts the operator with mgr. image is what memcached runs from.
func AddToManager(mgr ctrl.Manager, image string) error {
	if image == "" {
		return errors.New("there is no image to run: set MEMCACHED_IMAGE")
	}
	o := &Operator{
		client:   mgr.GetClient(),
		uncached: mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorderFor("memcached"), //nolint:staticcheck // the old one, which writes events of the core group
		image:    image,
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Complete(o)
}

//+kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch;update
//+kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
//+kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
//+kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update
//+kubebuilder:rbac:groups=core,resources=events,verbs=create;patch

// Reconcile looks after one Memcached.
func (o *Operator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &v1alpha1.Memcached{}
	if err := o.client.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var err error
	if memcached.DeletionTimestamp.IsZero() {
		err = o.keep(ctx, memcached)
	} else {
		err = o.letGo(ctx, memcached)
	}
	return next(err)
}

const (
	// catchUp is how long the cache may take to hear of the latest. The news usually come first.
	catchUp = time.Second
	// lookAgain is when to see whether a stranger's Deployment has gone: it has no owner here to be woken.
	lookAgain = 15 * time.Second
)

// next is what comes after a pass that ended with err.
func next(err error) (ctrl.Result, error) {
	var foreign *foreignError
	switch {
	case errors.As(err, &foreign):
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: catchUp}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil // Everything here is about to go.
	default:
		return ctrl.Result{}, err
	}
}

// letGo tells the end of a Memcached. Its Deployment follows by garbage collection, which would be
// disturbed by any change of it now.
func (o *Operator) letGo(ctx context.Context, memcached *v1alpha1.Memcached) error {
	if !controllerutil.RemoveFinalizer(memcached, finalizer) {
		return nil
	}
	if err := o.client.Update(ctx, memcached); err != nil {
		return client.IgnoreNotFound(err)
	}
	o.recorder.Event(memcached, corev1.EventTypeNormal, "Farewell", "No more servers are kept")
	return nil
}

// keep makes the Deployment what the Memcached asks for and writes down how it is doing.
func (o *Operator) keep(ctx context.Context, memcached *v1alpha1.Memcached) error {
	if controllerutil.AddFinalizer(memcached, finalizer) {
		if err := o.client.Update(ctx, memcached); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}}
	var had *int32
	done, err := controllerutil.CreateOrUpdate(ctx, o.client, deployment, func() error {
		had = deployment.Spec.Replicas
		if err := o.claim(ctx, memcached, deployment); err != nil {
			return err
		}
		shape(deployment, memcached, o.image)
		return nil
	})
	switch {
	case done == controllerutil.OperationResultCreated:
		o.recorder.Eventf(memcached, corev1.EventTypeNormal, "DeploymentCreated", "Created a Deployment of %d servers", memcached.Spec.Size)
	case done == controllerutil.OperationResultUpdated && had != nil && *had != memcached.Spec.Size:
		o.recorder.Eventf(memcached, corev1.EventTypeNormal, "DeploymentScaled", "Went from %d to %d servers", *had, memcached.Spec.Size)
	}
	return o.writeDown(ctx, memcached, deployment, err)
}

// foreignError says whose Deployment stands where that of a Memcached should.
type foreignError struct{ name, why string }

func (e *foreignError) Error() string { return fmt.Sprintf("Deployment %s %s", e.name, e.why) }

// claim makes the Memcached the controller of a Deployment, unless that has another or is no work of ours.
func (o *Operator) claim(ctx context.Context, memcached *v1alpha1.Memcached, deployment *appsv1.Deployment) error {
	found, ours := deployment.UID != "", metav1.IsControlledBy(deployment, memcached)
	var owned *controllerutil.AlreadyOwnedError
	err := controllerutil.SetControllerReference(memcached, deployment, o.client.Scheme())
	switch {
	case errors.As(err, &owned):
		return &foreignError{deployment.Name, fmt.Sprintf("is controlled by %s %s", owned.Owner.Kind, owned.Owner.Name)}
	case err != nil || !found || ours:
		return err
	case !madeFor(deployment, memcached):
		return &foreignError{deployment.Name, "runs other Pods, and nobody controls it"}
	}
	return o.stillThere(ctx, memcached)
}

// stillThere makes sure that an orphan is not adopted by a Memcached that is on its way out: a deletion
// with --cascade=orphan takes the reference off first, and whoever puts it back has the orphan deleted.
func (o *Operator) stillThere(ctx context.Context, memcached *v1alpha1.Memcached) error {
	now := &v1alpha1.Memcached{}
	err := o.uncached.Get(ctx, client.ObjectKeyFromObject(memcached), now)
	if apierrors.IsNotFound(err) || err == nil && (now.UID != memcached.UID || !now.DeletionTimestamp.IsZero()) {
		resource := v1alpha1.GroupVersion.WithResource("memcacheds").GroupResource()
		return apierrors.NewConflict(resource, memcached.Name, errors.New("it was deleted"))
	}
	return err
}
