package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/ready"
)

// readyPoll is how often to ask an API server that is starting. Nothing announces that it is there.
const readyPoll = 20 * time.Millisecond

// errNotReady is the cause of a context that ended because the control plane took too long.
var errNotReady = fmt.Errorf("not ready within %v", ReadyTimeout)

// awaitReady returns the version of the API server as soon as a Pod was scheduled and runs, and everything else is ready.
// It gives up at once when the supervisor ends, which it does when one of its programs ends.
func (a *attempt) awaitReady(ctx context.Context, c *clusters.Cluster) (version string, err error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, ReadyTimeout, errNotReady)
	defer cancel()
	go func() {
		select {
		case <-a.handle.done:
			giveUp(a.programEnded())
		case <-ctx.Done():
		}
	}()
	config, err := c.RESTConfig()
	if err != nil {
		return "", err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make client: %w", err)
	}
	// kwok tries again only after a second when it finds no place for a node's lease.
	err = poll(ctx, "find the namespace of leases", func() error {
		_, err := client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceNodeLease, metav1.GetOptions{})
		return err
	})
	for i := 0; err == nil && i < a.nodes; i++ {
		err = poll(ctx, "create a node", func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, newNode(nodeName(a.name, i)), metav1.CreateOptions{})
			return err
		})
	}
	if err == nil {
		err = runProbe(ctx, client)
	}
	if err == nil {
		err = poll(ctx, "ask for /readyz", func() error {
			return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		})
	}
	if err == nil {
		err = ready.Wait(ctx, client, ready.Wanted{Nodes: a.nodes})
	}
	if err != nil {
		return "", err
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("read version of the API server: %w", err)
	}
	return info.GitVersion, nil
}

// runProbe returns when a Pod of its own was admitted, scheduled and counted as running: the scheduler has no other sign of
// being at work. Of that Pod nothing but an event in kube-system is left.
func runProbe(ctx context.Context, client kubernetes.Interface) error {
	pods := client.CoreV1().Pods(metav1.NamespaceSystem)
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "none"}}},
	}
	// It is refused until its ServiceAccount exists.
	err := poll(ctx, "create a Pod", func() error {
		_, err := pods.Create(ctx, probe, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = poll(ctx, "run a Pod", func() error {
		pod, err := pods.Get(ctx, probe.Name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	if err != nil {
		return err
	}
	return pods.Delete(ctx, probe.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// poll tries until it works. The error is the cause of the end of ctx, with the last failure.
func poll(ctx context.Context, what string, try func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, errNotReady):
		return fmt.Errorf("%w: %s: %w", cause, what, last)
	default:
		return cause
	}
}

func nodeName(cluster string, i int) string { return fmt.Sprintf("%s-node-%d", cluster, i) }

// newNode is a node with room for any test.
func newNode(name string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("500"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
			"operator-lab.example.com/played-by": kwok,
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: runtime.GOARCH, OperatingSystem: "linux", ContainerRuntimeVersion: "kwok://", KubeletVersion: "kwok",
			},
		},
	}
}
