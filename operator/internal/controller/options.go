// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/registry"
)

// lab:9 begin beside

// errBeside is the cause of what is wrong beside the Deployment, which goes on
// serving. Somebody has to mend it, and the watch tells when that was done.
var errBeside = errors.New("needs help")

// waits tells whether a watch tells the end of all that failed, so that trying
// again does not help. A joined error may have something else in it.
func waits(failure error) bool {
	if joined, ok := failure.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !waits(err) })
	}
	// lab:10 begin waits-for-ever Nor does it help against a refusal.
	if errors.Is(failure, registry.ErrRefused) {
		return true
	}
	// lab:10 end
	return errors.Is(failure, errForeign) || errors.Is(failure, errBeside)
}

// lab:9 end

// lab:9 begin configure

// connectionsKey is the key of the ConfigMap that is read.
const connectionsKey = "connections"

// configure sets what the ConfigMap of memcached says in deployment, which shape
// has shaped. It changes nothing when the ConfigMap cannot be read.
func (r *MemcachedReconciler) configure(ctx context.Context, memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) error {
	name := memcached.Spec.OptionsFrom.Name
	if name == "" {
		return nil
	}
	options := &corev1.ConfigMap{}
	err := r.Get(ctx, types.NamespacedName{Namespace: memcached.Namespace, Name: name}, options)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: there is no ConfigMap %s", errBeside, name)
	} else if err != nil {
		return fmt.Errorf("get ConfigMap: %w", err)
	}
	connections, err := strconv.ParseUint(options.Data[connectionsKey], 10, 16)
	if err != nil || connections == 0 {
		return fmt.Errorf("%w: ConfigMap %s has %q for %s, which is no number of connections", errBeside, name, options.Data[connectionsKey], connectionsKey)
	}
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, fmt.Sprintf("--conn-limit=%d", connections))
	return nil
}

// lab:9 end

// lab:9 begin users-of

// optionsField is the name of the index of Memcacheds by their ConfigMap.
const optionsField = "spec.optionsFrom.name"

// optionsOf returns what the index has of a Memcached.
func optionsOf(memcached client.Object) []string {
	if m, ok := memcached.(*cachev1alpha1.Memcached); ok && m.Spec.OptionsFrom.Name != "" {
		return []string{m.Spec.OptionsFrom.Name}
	}
	return nil
}

// usersOf maps a ConfigMap to the Memcacheds that name it: none, for nearly all
// ConfigMaps. The index answers without looking through all Memcacheds.
func (r *MemcachedReconciler) usersOf(ctx context.Context, options client.Object) []reconcile.Request {
	users := &cachev1alpha1.MemcachedList{}
	err := r.List(ctx, users, client.InNamespace(options.GetNamespace()), client.MatchingFields{optionsField: options.GetName()})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to list who names a ConfigMap")
		return nil
	}
	var requests []reconcile.Request
	for i := range users.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&users.Items[i])})
	}
	return requests
}

// lab:9 end
