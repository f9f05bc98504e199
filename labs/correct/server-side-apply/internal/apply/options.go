package apply

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.org/applied/api/v1alpha1"
)

// options are the arguments of memcached that the ConfigMap of a Memcached asks for. missing says what is wrong with the ConfigMap.
func (r *Reconciler) options(ctx context.Context, memcached *cachev1alpha1.Memcached) (words []string, missing string, _ error) {
	key := client.ObjectKey{Namespace: memcached.Namespace, Name: memcached.Spec.OptionsFrom.Name}
	if key.Name == "" {
		return nil, "", nil
	}
	source := &corev1.ConfigMap{}
	switch err := r.Get(ctx, key, source); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("the ConfigMap %q does not exist", key.Name), nil
	case err != nil:
		return nil, "", fmt.Errorf("get ConfigMap: %w", err)
	}
	limit, err := strconv.Atoi(source.Data["connections"])
	if err != nil || limit <= 0 {
		return nil, fmt.Sprintf("the ConfigMap %q has no number above 0 under connections", key.Name), nil
	}
	return []string{"-c", strconv.Itoa(limit)}, "", nil
}

// byConfigMap is the index that readersOf asks.
const byConfigMap = "configMap"

func configMapOf(obj client.Object) []string {
	memcached, ok := obj.(*cachev1alpha1.Memcached)
	if !ok || memcached.Spec.OptionsFrom.Name == "" {
		return nil
	}
	return []string{memcached.Spec.OptionsFrom.Name}
}

// readersOf are the Memcacheds that name a ConfigMap.
func (r *Reconciler) readersOf(ctx context.Context, source client.Object) (requests []ctrl.Request) {
	var readers cachev1alpha1.MemcachedList
	if err := r.List(ctx, &readers, client.InNamespace(source.GetNamespace()), client.MatchingFields{byConfigMap: source.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list those who name a ConfigMap")
	}
	for i := range readers.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&readers.Items[i])})
	}
	return requests
}
