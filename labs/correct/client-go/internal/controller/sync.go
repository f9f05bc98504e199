package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.org/raw/apis/cache/v1alpha1"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;update
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// sync brings the objects of one Memcached to its spec.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	memcached, err := c.memcacheds.Get(key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get Memcached: %w", err)
	}
	if memcached.DeletionTimestamp != nil {
		return nil // The garbage collector deletes its Deployment and its Service, deleteEntry its entry.
	}
	limit, missing := c.limit(memcached)
	deployment, err := c.ensure(ctx, memcached, limit)
	problem, serviceErr := c.ensureService(ctx, memcached)
	if err := c.updateStatus(ctx, memcached, deployment, err, strings.Trim(missing+"; "+problem, "; ")); err != nil {
		return err
	}
	err = cmp.Or(serviceErr, err)
	if leaving(err) {
		return nil
	}
	return err
}

// ensure returns the Deployment as it is after what had to be done to it.
func (c *Controller) ensure(ctx context.Context, memcached *v1alpha1.Memcached, limit *string) (*appsv1.Deployment, error) {
	found, err := c.deployments.Deployments(memcached.Namespace).Get(memcached.Name)
	switch {
	case apierrors.IsNotFound(err):
		return c.create(ctx, memcached, limit)
	case err != nil:
		return nil, fmt.Errorf("get Deployment: %w", err)
	case metav1.IsControlledBy(found, memcached):
		return c.repair(ctx, memcached, found.DeepCopy(), found, limit)
	case metav1.GetControllerOf(found) == nil && selects(found, memcached):
		return c.adopt(ctx, memcached, found, limit)
	default:
		return found, newForeign(found)
	}
}

func (c *Controller) create(ctx context.Context, memcached *v1alpha1.Memcached, limit *string) (*appsv1.Deployment, error) {
	wanted := newDeployment(memcached)
	shape(wanted, memcached, c.Image, limit)
	created, err := c.Deployments.Deployments(memcached.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create Deployment: %w", err)
	}
	c.Events.Eventf(memcached, created, corev1.EventTypeNormal, "DeploymentMade", "Create",
		"Made a Deployment for %d servers", memcached.Spec.Size)
	return created, nil
}

// repair sends wanted, once it is in shape, if that makes it another than found, which is never changed
// itself: all of the program shares it.
func (c *Controller) repair(ctx context.Context, memcached *v1alpha1.Memcached, wanted, found *appsv1.Deployment, limit *string) (*appsv1.Deployment, error) {
	shape(wanted, memcached, c.Image, limit)
	if equality.Semantic.DeepEqual(wanted, found) || found.DeletionTimestamp != nil {
		return found, nil
	}
	// The update says which version it was made from. If that is not the latest, it is refused.
	updated, err := c.Deployments.Deployments(memcached.Namespace).Update(ctx, wanted, metav1.UpdateOptions{})
	if err != nil {
		return found, fmt.Errorf("update Deployment: %w", err)
	}
	if from, to := replicas(found), memcached.Spec.Size; from != to {
		c.Events.Eventf(memcached, updated, corev1.EventTypeNormal, "ServersChanged", "Scale",
			"Changed the number of servers from %d to %d", from, to)
	}
	return updated, nil
}

// adopt makes the Memcached the controller of an orphan. It asks the API server whether the Memcached still is there: in a
// deletion with --cascade=orphan, the event of the orphan can come before that of the deletion.
func (c *Controller) adopt(ctx context.Context, memcached *v1alpha1.Memcached, orphan *appsv1.Deployment, limit *string) (*appsv1.Deployment, error) {
	now, err := c.Memcacheds.In(memcached.Namespace).Get(ctx, memcached.Name, metav1.GetOptions{})
	if err != nil {
		return orphan, fmt.Errorf("get Memcached: %w", err)
	}
	if now.UID != memcached.UID || now.DeletionTimestamp != nil {
		return orphan, apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("memcacheds").GroupResource(),
			memcached.Name, errors.New("it was deleted"))
	}
	wanted := orphan.DeepCopy()
	wanted.OwnerReferences = append(wanted.OwnerReferences, *metav1.NewControllerRef(memcached, v1alpha1.Kind))
	return c.repair(ctx, memcached, wanted, orphan, limit)
}

// foreignError means that the Deployment of a Memcached's name is not its own.
type foreignError struct{ message string }

func (e *foreignError) Error() string { return e.message }

func newForeign(found *appsv1.Deployment) error {
	owner := metav1.GetControllerOf(found)
	if owner == nil {
		return &foreignError{message: fmt.Sprintf("Deployment %s selects other Pods than those of this Memcached", found.Name)}
	}
	return &foreignError{message: fmt.Sprintf("Deployment %s is controlled by %s %s", found.Name, owner.Kind, owner.Name)}
}

// outdated says that the informers are behind the API server.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// leaving says that the whole namespace is being deleted.
func leaving(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }
