package embedded

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
)

// canaryPoll is how often to try to create a Pod while its ServiceAccount is still to
// come.
const canaryPoll = 50 * time.Millisecond

// AwaitPods returns as soon as a Pod of its own was admitted, scheduled and counted as
// running: the scheduler has no other sign of being at work. Of that Pod nothing but an
// event in kube-system is left.
func AwaitPods(ctx context.Context, client kubernetes.Interface) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "lab-canary", Namespace: metav1.NamespaceSystem},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "canary", Image: "none"}}},
	}
	pods := client.CoreV1().Pods(pod.Namespace)
	var last error
	err := wait.PollUntilContextCancel(ctx, canaryPoll, true, func(context.Context) (bool, error) {
		// It is refused until its ServiceAccount exists.
		_, last = pods.Create(ctx, pod, metav1.CreateOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("create a Pod: %w", last)
	}
	err = clusters.WaitForPod(ctx, client, pod.Namespace, pod.Name, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning
	})
	if err != nil {
		return fmt.Errorf("wait for a Pod to be scheduled and run: %w", err)
	}
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return fmt.Errorf("delete a Pod: %w", err)
	}
	return nil
}
