// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// lab:9 begin ensure-service

// ensureService makes the Service of memcached what it should be. The name of a
// Service has no dots: a Memcached whose name has one gets no Service.
func (r *MemcachedReconciler) ensureService(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if len(validation.IsDNS1123Label(memcached.Name)) > 0 {
		return nil
	}
	current := &corev1.Service{}
	err := r.Get(ctx, client.ObjectKeyFromObject(memcached), current)
	if apierrors.IsNotFound(err) {
		return r.createService(ctx, memcached)
	} else if err != nil {
		return fmt.Errorf("get Service: %w", err)
	}
	if !metav1.IsControlledBy(current, memcached) {
		return &terminalError{reasonServiceConflict, fmt.Sprintf("Service %s exists already and is not controlled by the Memcached", current.Name)}
	}
	if current.Spec.ClusterIP != corev1.ClusterIPNone { // an earlier version made it, and the field is immutable
		return client.IgnoreNotFound(r.Delete(ctx, current, client.Preconditions{UID: &current.UID})) // The next pass creates another.
	}
	wanted := current.DeepCopy()
	mutateService(wanted, memcached)
	if equality.Semantic.DeepEqual(current, wanted) {
		return nil
	}
	if err := r.Update(ctx, wanted); err != nil {
		return fmt.Errorf("update Service: %w", err)
	}
	return nil
}

// createService creates the Service of memcached. It is headless: its DNS name
// resolves to all Pods. Memcached servers share nothing, so each client has to
// choose the server of a key, and no load balancer may choose for it.
func (r *MemcachedReconciler) createService(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: memcached.Name, Namespace: memcached.Namespace}}
	service.Spec.ClusterIP = corev1.ClusterIPNone
	mutateService(service, memcached)
	if err := controllerutil.SetControllerReference(memcached, service, r.Scheme); err != nil {
		return err
	}
	if err := r.Create(ctx, service); err != nil {
		return fmt.Errorf("create Service: %w", err)
	}
	return nil
}

// lab:9 end

// lab:9 begin mutate-service

// mutateService sets those fields of service that the operator answers for. All
// other fields stay.
func mutateService(service *corev1.Service, memcached *cachev1alpha1.Memcached) {
	service.Labels = merge(service.Labels, labelsFor(memcached))
	service.Spec.Selector = selectorFor(memcached).MatchLabels
	if len(service.Spec.Ports) != 1 {
		service.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	port := &service.Spec.Ports[0]
	port.Name, port.Protocol = "memcached", corev1.ProtocolTCP
	port.Port, port.TargetPort = memcached.Spec.ContainerPort, intstr.FromInt32(memcached.Spec.ContainerPort)
}

// lab:9 end
