package clusters

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// ControllerRestarter is a provider that can start the controller manager of a cluster anew. It looks for new
// kinds every 30 s only (restMapper.Reset in kube-controller-manager's start of its controllers), and until
// then its garbage collector does not know whose owner a custom resource is. A new one knows at once.
type ControllerRestarter interface {
	// RestartControllers ends the controller manager and waits until another one runs.
	RestartControllers(ctx context.Context, name string) error
}

const (
	// restartTimeout is for a container that the kubelet starts anew. It takes a second or two.
	restartTimeout = 30 * time.Second
	// controllersSelector selects the Pods of the controller manager, one for each control-plane node.
	controllersSelector = "component=kube-controller-manager"
	// endControllers ends the processes of that name, which /proc cuts to 15 letters. Not every node image
	// has a pkill.
	endControllers = `for p in /proc/[0-9]*; do if [ "$(cat "$p/comm" 2>/dev/null)" = kube-controller ]; then kill "${p#/proc/}"; fi; done`
)

// RestartControllers ends the controller manager on every control-plane node, and waits until the kubelet has
// started it again.
func (k *Kind) RestartControllers(ctx context.Context, name string) error {
	config, err := RESTConfig(k.Kubeconfig(name))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return problem(err, FixCluster, "cannot connect to cluster %s", name)
	}
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	before, err := controllerStarts(ctx, client)
	if err != nil {
		return problem(err, FixCluster, "cannot find the controllers of cluster %s", name)
	}
	if err := k.endControllers(ctx, name); err != nil {
		return err
	}
	if err := awaitStarts(ctx, client, before); err != nil {
		return problem(err, FixCluster, "the controllers of cluster %s do not start again", name)
	}
	return nil
}

func (k *Kind) endControllers(ctx context.Context, name string) error {
	list, err := k.nodes(ctx, name)
	if err != nil {
		return problem(describe(err), fixEngine, "cannot list the nodes of cluster %s", name)
	}
	planes, err := nodeutils.ControlPlaneNodes(list)
	if err != nil {
		return problem(describe(err), fixEngine, "cannot find the control plane of cluster %s", name)
	}
	for _, node := range planes {
		if err := node.CommandContext(ctx, "sh", "-c", endControllers).Run(); err != nil {
			return problem(describe(err), fixEngine, "cannot restart the controllers of cluster %s", name)
		}
	}
	return nil
}

// controllerStarts is how often the controller manager was started anew, by Pod.
func controllerStarts(ctx context.Context, client kubernetes.Interface) (map[types.UID]int32, error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: controllersSelector})
	if err != nil {
		return nil, err
	}
	starts := map[types.UID]int32{}
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			starts[pod.UID] = status.RestartCount
		}
	}
	return starts, nil
}

// awaitStarts waits until each of the Pods runs its container once more.
func awaitStarts(ctx context.Context, client kubernetes.Interface, before map[types.UID]int32) error {
	pods := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceSystem,
		func(o *metav1.ListOptions) { o.LabelSelector = controllersSelector })
	running := map[types.UID]bool{}
	_, err := toolswatch.UntilWithSync(ctx, pods, &corev1.Pod{}, nil, func(e apiwatch.Event) (bool, error) {
		if pod, ok := e.Object.(*corev1.Pod); ok {
			for _, status := range pod.Status.ContainerStatuses {
				running[pod.UID] = status.RestartCount > before[pod.UID] && status.State.Running != nil
			}
		}
		for uid := range before {
			if !running[uid] {
				return false, nil
			}
		}
		return true, nil
	})
	return err
}
