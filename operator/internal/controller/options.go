// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// lab:9 begin configure

// connectionsKey is the key of the ConfigMap that is read.
const connectionsKey = "connections"

// configure sets the options of memcached's ConfigMap in deployment, after
// mutateDeployment. It changes nothing if the ConfigMap is missing or invalid.
func (r *MemcachedReconciler) configure(ctx context.Context, memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) error {
	name := memcached.Spec.OptionsFrom.Name
	if name == "" {
		return nil
	}
	options := &corev1.ConfigMap{}
	err := r.Get(ctx, types.NamespacedName{Namespace: memcached.Namespace, Name: name}, options)
	if apierrors.IsNotFound(err) {
		return &terminalError{reasonConfigMapInvalid, fmt.Sprintf("there is no ConfigMap %s", name)}
	} else if err != nil {
		return fmt.Errorf("get ConfigMap: %w", err)
	}
	connections, err := strconv.ParseUint(options.Data[connectionsKey], 10, 16)
	if err != nil || connections == 0 {
		return &terminalError{reasonConfigMapInvalid, fmt.Sprintf("ConfigMap %s: %s is %q, not a number from 1 to 65535",
			name, connectionsKey, options.Data[connectionsKey])}
	}
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, fmt.Sprintf("--conn-limit=%d", connections))
	return nil
}

// lab:9 end

// lab:9 begin map-configmap

// optionsField is the name of the index of Memcacheds by their ConfigMap.
const optionsField = "spec.optionsFrom.name"

// optionsOf returns what the index has of a Memcached.
func optionsOf(memcached client.Object) []string {
	if m, ok := memcached.(*cachev1alpha1.Memcached); ok && m.Spec.OptionsFrom.Name != "" {
		return []string{m.Spec.OptionsFrom.Name}
	}
	return nil
}

// mapConfigMapToMemcacheds maps a ConfigMap to the Memcacheds that name it: none, for
// nearly all ConfigMaps. The index answers without a look at all Memcacheds.
func (r *MemcachedReconciler) mapConfigMapToMemcacheds(ctx context.Context, options client.Object) []reconcile.Request {
	memcacheds := &cachev1alpha1.MemcachedList{}
	err := r.List(ctx, memcacheds, client.InNamespace(options.GetNamespace()), client.MatchingFields{optionsField: options.GetName()})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to list the Memcacheds that name a ConfigMap")
		return nil
	}
	var requests []reconcile.Request
	for i := range memcacheds.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&memcacheds.Items[i])})
	}
	return requests
}

// lab:9 end
