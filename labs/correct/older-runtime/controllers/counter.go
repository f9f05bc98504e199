package controllers

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cache "example.org/caching/pkg/apis/cache/v1alpha1"
)

// counter is the name of the port at which the servers serve.
const counter = "counter"

// openCounter keeps the Service, under the name of its Memcached. closed says why there is none, if somebody else has to
// see to that; an error is tried again.
func (k *Keeper) openCounter(ctx context.Context, mc *cache.Memcached) (closed string, err error) {
	if len(validation.IsDNS1123Label(mc.Name)) > 0 {
		return "", nil // Services have no dots.
	}
	var s corev1.Service
	err = k.Get(ctx, client.ObjectKeyFromObject(mc), &s)
	before := s.DeepCopy()
	switch {
	case apierrors.IsNotFound(err):
		s.Namespace, s.Name = mc.Namespace, mc.Name
		furnish(&s, mc)
		if err := controllerutil.SetControllerReference(mc, &s, k.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
			return "", err
		}
		err = k.Create(ctx, &s)
	case err != nil:
		return "", err
	case !metav1.IsControlledBy(&s, mc):
		if owner := metav1.GetControllerOf(&s); owner != nil && owner.Kind == "Memcached" && owner.Name == mc.Name {
			return "", nil // of an earlier one: it goes, and that is heard of
		}
		return fmt.Sprintf("There is another Service %q.", s.Name), nil
	default:
		if furnish(&s, mc); equality.Semantic.DeepEqual(before, &s) || !s.DeletionTimestamp.IsZero() {
			return "", nil
		}
		err = k.Patch(ctx, &s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	switch {
	case apierrors.IsInvalid(err):
		return fmt.Sprintf("No Service: %v.", err), nil
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Sprintf("No Service: %v.", err), err
	}
	return "", client.IgnoreNotFound(err)
}

// furnish sets what is ours in a Service. The port by its name is whatever the Pod says that it is.
func furnish(s *corev1.Service, mc *cache.Memcached) {
	s.Spec.Selector = marks(mc)
	if len(s.Spec.Ports) != 1 {
		s.Spec.Ports = []corev1.ServicePort{{}}
	}
	p := &s.Spec.Ports[0]
	p.Name, p.Protocol, p.Port, p.TargetPort = counter, corev1.ProtocolTCP, mc.Spec.ContainerPort, intstr.FromString(counter)
}

// usual is memcached's own limit of connections.
const usual = "1024"

// limit says how many connections a server may have. It is empty when nobody can say, and unread is why.
func (k *Keeper) limit(ctx context.Context, mc *cache.Memcached) (limit, unread string, err error) {
	if mc.Spec.OptionsFrom == nil {
		return usual, "", nil
	}
	var from corev1.ConfigMap
	err = k.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: mc.Spec.OptionsFrom.Name}, &from)
	if apierrors.IsNotFound(err) {
		return "", fmt.Sprintf("No ConfigMap %q.", mc.Spec.OptionsFrom.Name), nil
	}
	if err != nil {
		return "", "", err
	}
	n, err := strconv.ParseUint(from.Data["connections"], 10, 31)
	if err != nil || n == 0 {
		return "", fmt.Sprintf("No good number of connections in ConfigMap %q.", from.Name), nil
	}
	return strconv.FormatUint(n, 10), "", nil
}

// latest is the limit that the servers have so far.
func latest(c *corev1.Container) string {
	for _, variable := range c.Env {
		if variable.Name == limitVariable {
			return variable.Value
		}
	}
	return usual
}

// readBy finds those who read a ConfigMap. In one namespace there are never many to look through.
func (k *Keeper) readBy(ctx context.Context, from client.Object) (readers []ctrl.Request) {
	var all cache.MemcachedList
	if err := k.List(ctx, &all, client.InNamespace(from.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the readers", "of", from.GetName())
	}
	for _, mc := range all.Items {
		if mc.Spec.OptionsFrom != nil && mc.Spec.OptionsFrom.Name == from.GetName() {
			readers = append(readers, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&mc)})
		}
	}
	return readers
}
