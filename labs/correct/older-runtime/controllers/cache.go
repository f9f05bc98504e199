// Package controllers keeps the servers that Memcacheds ask for.
package controllers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cache "example.org/caching/pkg/apis/cache/v1alpha1"
)

// farewell is held until the end of a Memcached was announced, and its guest crossed out.
const farewell = "caching.example.org/farewell"

// portVariable tells the servers where to listen, and limitVariable how many connections they may have.
const (
	portVariable  = "CACHE_PORT"
	limitVariable = "CACHE_CONNECTIONS"
)

// Keeper is the reconciler.
type Keeper struct {
	client.Client
	Live     client.Reader // asks the API server itself
	Recorder record.EventRecorder
	Image    string
	Guests   *GuestBook // where there is one
}

// Register starts the controller with the manager.
func (k *Keeper) Register(mgr ctrl.Manager) error {
	options := controller.Options{MaxConcurrentReconciles: 6} // as one may wait for a slow book
	if k.Guests != nil {
		// The pauses after failures double no further than this, or an outage would last for longer than it does.
		options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](10*time.Millisecond, visit)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("cache-keeper").
		WithOptions(options).
		For(&cache.Memcached{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Watches(&corev1.Service{}, &handler.EnqueueRequestForObject{}). // whosever it is: it has the same name
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(k.readBy)).
		Complete(k)
}

// The finalizer is on the Memcached itself, hence patch; the condition is in its status.

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile makes one Memcached true.
func (k *Keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mc cache.Memcached
	if err := k.Get(ctx, req.NamespacedName, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := k.refresh(ctx, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var err error
	if mc.DeletionTimestamp.IsZero() {
		err = k.serve(ctx, &mc)
	} else {
		err = k.sayGoodbye(ctx, &mc)
	}
	again := lookAgain
	if k.Guests != nil {
		again = visit
	}
	switch {
	case errors.Is(err, errTaken):
		return ctrl.Result{RequeueAfter: again}, nil // Owns does not tell when it has gone.
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil // The cache was behind; its news come first.
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil
	case err == nil && k.Guests != nil && mc.DeletionTimestamp.IsZero():
		return ctrl.Result{RequeueAfter: visit}, nil // The book tells nobody who else writes into it.
	default:
		return ctrl.Result{}, err
	}
}

// lookAgain is when to see whether somebody else's Deployment has gone.
const lookAgain = 20 * time.Second

// serve gets the servers that are asked for, and tells how far it came.
func (k *Keeper) serve(ctx context.Context, mc *cache.Memcached) error {
	if !controllerutil.ContainsFinalizer(mc, farewell) {
		before := mc.DeepCopy()
		controllerutil.AddFinalizer(mc, farewell)
		if err := k.Patch(ctx, mc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	answer := k.enter(ctx, mc)
	defer answer()
	limit, unread, err := k.limit(ctx, mc)
	if err != nil {
		return err
	}
	closed, again := k.openCounter(ctx, mc)
	lacks := besides{text: strings.TrimSpace(unread + " " + closed), answer: answer}
	servers := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mc.Namespace, Name: mc.Name}}
	var had *int32
	done, err := controllerutil.CreateOrUpdate(ctx, k.Client, servers, func() error {
		had = servers.Spec.Replicas
		return k.shape(ctx, mc, servers, limit)
	})
	switch {
	case errors.Is(err, errTaken):
		return errors.Join(err, k.report(ctx, mc, nil, metav1.ConditionFalse, "NameTaken", err.Error(), lacks))
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errors.Join(err, k.report(ctx, mc, nil, metav1.ConditionFalse, "NotAllowed", err.Error(), lacks))
	case err != nil:
		return err
	case done == controllerutil.OperationResultCreated:
		k.Recorder.Event(mc, corev1.EventTypeNormal, "ServersOrdered", "ordered a Deployment")
	case done == controllerutil.OperationResultUpdated && had != nil && *had != mc.Spec.Size:
		k.Recorder.Eventf(mc, corev1.EventTypeNormal, "ServersCounted", "from %d to %d", *had, mc.Spec.Size)
	}
	err = errors.Join(k.judge(ctx, mc, servers, lacks), again)
	if missed := answer(); !errors.Is(missed, errUnwelcome) { // which trying again does not change
		err = errors.Join(err, missed)
	}
	return err
}

// sayGoodbye lets a deleted Memcached go; its Deployment is the garbage collector's.
func (k *Keeper) sayGoodbye(ctx context.Context, mc *cache.Memcached) error {
	before := mc.DeepCopy()
	if !controllerutil.RemoveFinalizer(mc, farewell) {
		return nil
	}
	if err := k.Guests.crossOut(ctx, mc); err != nil {
		return err // It stays for as long as its entry may be there.
	}
	ctrl.LoggerFrom(ctx).Info("Goodbye", "servers", mc.Spec.Size)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(k.Patch(ctx, mc, patch))
}

// shape sets what is ours in a Deployment, and leaves the rest to whoever set it.
func (k *Keeper) shape(ctx context.Context, mc *cache.Memcached, d *appsv1.Deployment, limit string) error {
	mine := marks(mc)
	switch {
	case d.CreationTimestamp.IsZero():
		d.Labels = mine
		d.Spec.Selector = metav1.SetAsLabelSelector(mine)
		d.Spec.Template.Labels = mine
	case metav1.GetControllerOf(d) == nil:
		if err := k.mayAdopt(ctx, mc, d, mine); err != nil {
			return err
		}
	}
	if err := controllerutil.SetControllerReference(mc, d, k.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return takenBy(err)
	}
	d.Spec.Replicas = ptr.To(mc.Spec.Size)
	pod := &d.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = ptr.To[int64](5)
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		RunAsUser:      ptr.To[int64](2000),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Sysctls:        []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
	}
	if len(pod.Containers) != 1 {
		pod.Containers = []corev1.Container{{Name: "server"}}
	}
	c := &pod.Containers[0]
	if limit == "" {
		limit = latest(c)
	}
	c.Image = k.Image
	c.Command = []string{"memcached", "--port=$(" + portVariable + ")", "--conn-limit=$(" + limitVariable + ")", "--memory-limit=16"}
	c.Args = nil
	c.Env = []corev1.EnvVar{{Name: portVariable, Value: strconv.Itoa(int(mc.Spec.ContainerPort))}, {Name: limitVariable, Value: limit}}
	c.Ports = []corev1.ContainerPort{{Name: counter, ContainerPort: mc.Spec.ContainerPort, Protocol: corev1.ProtocolTCP}}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return nil
}

// errTaken says that somebody else's Deployment has the name of a Memcached.
var errTaken = errors.New("there is another Deployment")

// takenBy says whose Deployment it is, if that is what is wrong.
func takenBy(err error) error {
	var owned *controllerutil.AlreadyOwnedError
	if !errors.As(err, &owned) {
		return err
	}
	return fmt.Errorf("%w %q, of %s %s", errTaken, owned.Object.GetName(), owned.Owner.Kind, owned.Owner.Name)
}

// marks are the labels of the servers of a Memcached.
func marks(mc *cache.Memcached) map[string]string {
	return map[string]string{"caching.example.org/part-of": partOf(mc), "caching.example.org/role": "server"}
}

// partOf stands for a Memcached in labels, which are shorter than names may be.
func partOf(mc *cache.Memcached) string {
	if len(mc.Name) <= validation.LabelValueMaxLength {
		return mc.Name
	}
	return fmt.Sprintf("%x", sha256.Sum224([]byte(mc.Name)))
}

// mayAdopt looks whether a Deployment without a controller runs our Pods, and asks the API server whether
// the Memcached is there to stay. A deletion with --cascade=orphan sets its Deployment free, and the
// cache may hear of that first.
func (k *Keeper) mayAdopt(ctx context.Context, mc *cache.Memcached, d *appsv1.Deployment, mine map[string]string) error {
	if !equality.Semantic.DeepEqual(d.Spec.Selector, metav1.SetAsLabelSelector(mine)) {
		return fmt.Errorf("%w %q, of nobody", errTaken, d.Name)
	}
	var now cache.Memcached
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(mc), &now); err != nil {
		return err
	}
	if now.UID != mc.UID || !now.DeletionTimestamp.IsZero() {
		return apierrors.NewConflict(schema.GroupResource{Group: cache.SchemeGroupVersion.Group, Resource: "memcacheds"}, mc.Name, errors.New("it is going"))
	}
	return nil
}

// judge tells what the Deployment has achieved.
func (k *Keeper) judge(ctx context.Context, mc *cache.Memcached, d *appsv1.Deployment, lacks besides) error {
	have, want := d.Status.AvailableReplicas, mc.Spec.Size
	text := fmt.Sprintf("%d of %d", have, want)
	if have == want {
		return k.report(ctx, mc, d, metav1.ConditionTrue, "EverybodyServes", text, lacks)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return k.report(ctx, mc, d, metav1.ConditionFalse, "NoRoom", text+": "+c.Message, lacks)
		}
	}
	return k.report(ctx, mc, d, metav1.ConditionFalse, "SomeAreMissing", text, lacks)
}

// besides is what a pass has found beside the servers: what they lack, and what the guest book answers.
type besides struct {
	text   string
	answer func() error
}

// report writes the status, if it is news, and warns when somebody is newly in the way. d is nil when there is no
// Deployment to count by. What it lacks otherwise does not keep it from serving.
func (k *Keeper) report(ctx context.Context, mc *cache.Memcached, d *appsv1.Deployment, status metav1.ConditionStatus, reason, message string, lacks besides) error {
	before, lastReason := mc.DeepCopy(), ""
	if last := find(mc, "Available"); last != nil {
		lastReason = last.Reason
	}
	settled := d != nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == mc.Spec.Size && d.Status.Replicas == mc.Spec.Size
	degraded, progressing := metav1.ConditionFalse, metav1.ConditionFalse
	switch {
	case reason == "NameTaken" || reason == "NotAllowed" || reason == "NoRoom":
		degraded = metav1.ConditionTrue
	case status != metav1.ConditionTrue || !settled:
		progressing = metav1.ConditionTrue
	}
	set(mc, "Available", status, reason, message)
	set(mc, "Progressing", progressing, reason, "")
	why := reason
	if lacks.text != "" {
		degraded, why = metav1.ConditionTrue, "SomethingLacks"
	}
	set(mc, "Degraded", degraded, why, lacks.text)
	k.note(mc, lacks.answer())
	if d != nil {
		mc.Status.Replicas, mc.Status.Selector = d.Status.Replicas, metav1.FormatLabelSelector(d.Spec.Selector)
	}
	if equality.Semantic.DeepEqual(before.Status, mc.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Status().Patch(ctx, mc, patch, client.FieldOwner("cache-keeper")); err != nil {
		return client.IgnoreNotFound(err)
	}
	if lastReason != reason && (reason == "NameTaken" || reason == "NotAllowed") {
		k.Recorder.Event(mc, corev1.EventTypeWarning, reason, message)
	}
	return nil
}

// find returns a condition, or nil.
func find(mc *cache.Memcached, kind string) *metav1.Condition {
	for i := range mc.Status.Conditions {
		if mc.Status.Conditions[i].Type == kind {
			return &mc.Status.Conditions[i]
		}
	}
	return nil
}

// set puts a condition into the list; those of others stay where they are.
func set(mc *cache.Memcached, kind string, status metav1.ConditionStatus, reason, message string) {
	c := find(mc, kind)
	if c == nil {
		mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{Type: kind})
		c = find(mc, kind)
	}
	if c.Status != status {
		c.Status, c.LastTransitionTime = status, metav1.Now()
	}
	c.Reason, c.Message, c.ObservedGeneration = reason, message, mc.Generation
}
