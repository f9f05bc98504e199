package controller

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

	"example.org/raw/apis/cache/v1alpha1"
)

// limit is what the ConfigMap of a Memcached says: "" when there is none to ask. It is nil when nobody knows, and missing
// says why.
func (c *Controller) limit(memcached *v1alpha1.Memcached) (limit *string, missing string) {
	if memcached.Spec.OptionsFrom == nil {
		return new(""), ""
	}
	source := memcached.Spec.OptionsFrom.Name
	options, err := c.configMaps.ConfigMaps(memcached.Namespace).Get(source)
	if err != nil {
		return nil, fmt.Sprintf("ConfigMap %s is missing", source)
	}
	most, err := strconv.ParseInt(options.Data["connections"], 10, 32)
	if err != nil || most < 1 {
		return nil, fmt.Sprintf("ConfigMap %s does not say how many connections", source)
	}
	return new(strconv.FormatInt(most, 10)), ""
}

// ensureDoor makes the Service what it should be. shut says what keeps it from that until somebody else acts, and an error
// is to be tried again.
func (c *Controller) ensureDoor(ctx context.Context, memcached *v1alpha1.Memcached) (shut string, err error) {
	if len(validation.IsDNS1123Label(memcached.Name)) > 0 {
		return "", nil // A Service cannot have that name.
	}
	found, err := c.doors.Services(memcached.Namespace).Get(memcached.Name)
	switch {
	case apierrors.IsNotFound(err):
		wanted := newDoor(memcached)
		shapeDoor(wanted, memcached)
		_, err = c.Services.Services(memcached.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
	case err != nil:
	case !metav1.IsControlledBy(found, memcached):
		if owner := metav1.GetControllerOf(found); owner != nil && owner.Kind == v1alpha1.Kind.Kind && owner.Name == memcached.Name {
			return "", nil // That of an earlier Memcached goes by itself.
		}
		return fmt.Sprintf("Service %s is not this Memcached's", found.Name), nil
	default:
		wanted := found.DeepCopy()
		shapeDoor(wanted, memcached)
		if equality.Semantic.DeepEqual(wanted, found) || found.DeletionTimestamp != nil {
			return "", nil
		}
		_, err = c.Services.Services(memcached.Namespace).Update(ctx, wanted, metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err): // The same again would be no better.
		return fmt.Sprintf("Service %s cannot be: %v", memcached.Name, err), nil
	case refused(err):
		shut = fmt.Sprintf("Service %s is refused: %v", memcached.Name, err)
	}
	return shut, fmt.Errorf("write Service: %w", err)
}

func newDoor(memcached *v1alpha1.Memcached) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace:       memcached.Namespace,
		Name:            memcached.Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(memcached, v1alpha1.Kind)},
	}}
}

// shapeDoor sets whom the Service leads to, and by which port. Its addresses are the API server's, and all else is for others.
func shapeDoor(door *corev1.Service, memcached *v1alpha1.Memcached) {
	door.Spec.Selector = labelsOf(memcached)
	if len(door.Spec.Ports) != 1 {
		door.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	p, number := &door.Spec.Ports[0], memcached.Spec.ContainerPort
	p.Protocol, p.Port, p.TargetPort = corev1.ProtocolTCP, number, intstr.FromInt32(number)
}
