package clusters

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// restartTimeout is for a container that the kubelet starts anew. It takes a second or two.
	restartTimeout = 30 * time.Second
	// endControllers ends the processes of that name, which /proc cuts to 15 letters. Not every node image
	// has a pkill.
	endControllers = `for p in /proc/[0-9]*; do if [ "$(cat "$p/comm" 2>/dev/null)" = kube-controller ]; then kill "${p#/proc/}"; fi; done`
)

// RestartControllers ends the controller manager, and waits until the kubelet has started it again.
func (k *Kind) RestartControllers(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	plane, err := k.controlPlane(ctx, name)
	if err != nil {
		return err
	}
	client, err := connect(k.Kubeconfig(name))
	if err != nil {
		return err
	}
	pod, err := client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, "kube-controller-manager-"+plane.String(), metav1.GetOptions{})
	if err != nil {
		return problem(err, FixCluster, "cannot find the controllers of cluster %s", name)
	}
	before := int32(0)
	for _, status := range pod.Status.ContainerStatuses {
		before = status.RestartCount
	}
	if err := plane.CommandContext(ctx, "sh", "-c", endControllers).Run(); err != nil {
		return problem(describe(err), fixEngine, "cannot restart the controllers of cluster %s", name)
	}
	err = WaitForPod(ctx, client, pod.Namespace, pod.Name, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
			return status.RestartCount > before && status.State.Running != nil
		})
	})
	if err != nil {
		return problem(err, FixCluster, "the controllers of cluster %s do not start again", name)
	}
	return nil
}
