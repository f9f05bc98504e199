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

// limit is what the ConfigMap of a Memcached says: "" when it names none, nil when the ConfigMap does not say it; missing then
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

// ensureService makes the Service what it should be. problem says why that needs somebody else. The caller tries again after an
// error.
func (c *Controller) ensureService(ctx context.Context, memcached *v1alpha1.Memcached) (problem string, err error) {
	if len(validation.IsDNS1123Label(memcached.Name)) > 0 {
		return "", nil // A Service cannot have that name.
	}
	found, err := c.services.Services(memcached.Namespace).Get(memcached.Name)
	switch {
	case apierrors.IsNotFound(err):
		wanted := newService(memcached)
		setService(wanted, memcached)
		_, err = c.Services.Services(memcached.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
	case err != nil:
	case !metav1.IsControlledBy(found, memcached):
		return fmt.Sprintf("Service %s is not this Memcached's", found.Name), nil
	default:
		wanted := found.DeepCopy()
		setService(wanted, memcached)
		if equality.Semantic.DeepEqual(wanted, found) || found.DeletionTimestamp != nil {
			return "", nil
		}
		_, err = c.Services.Services(memcached.Namespace).Update(ctx, wanted, metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err): // The same write would be refused again.
		return fmt.Sprintf("Service %s cannot be: %v", memcached.Name, err), nil
	case refused(err):
		problem = fmt.Sprintf("Service %s is refused: %v", memcached.Name, err)
	}
	return problem, fmt.Errorf("write Service: %w", err)
}

func newService(memcached *v1alpha1.Memcached) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace:       memcached.Namespace,
		Name:            memcached.Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(memcached, v1alpha1.Kind)},
	}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}} // A client chooses among all servers.
}

// setService sets the selector and the port. All other fields belong to the API server and to users.
func setService(service *corev1.Service, memcached *v1alpha1.Memcached) {
	service.Spec.Selector = labelsOf(memcached)
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	p, number := &service.Spec.Ports[0], memcached.Spec.ContainerPort
	p.Protocol, p.Port, p.TargetPort = corev1.ProtocolTCP, number, intstr.FromInt32(number)
}
