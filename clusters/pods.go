package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// WaitForPod watches one Pod, and returns as soon as until says yes. The error is the end of ctx, or a watch that failed.
func WaitForPod(ctx context.Context, client kubernetes.Interface, namespace, name string, until func(*corev1.Pod) bool) error {
	pods := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace,
		fields.OneTermEqualSelector("metadata.name", name))
	_, err := toolswatch.UntilWithSync(ctx, pods, &corev1.Pod{}, nil, func(event apiwatch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return false, fmt.Errorf("watch Pod %s: %v", name, event.Object)
		}
		return until(pod), nil
	})
	return err
}
