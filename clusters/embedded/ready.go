package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded/supervisor"
)

// apiPoll is how often to ask an API server that is starting. Nothing announces
// that it is there.
const apiPoll = 10 * time.Millisecond

// errNotReady is the cause of a context that ended because the control plane took
// too long.
var errNotReady = errors.New("not ready in time")

// awaitReady returns the version of the API server as soon as everything works. It
// gives up at once when a program ends that cannot end without harm.
func (a *attempt) awaitReady(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.readyTimeout, errNotReady)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	g.Go(func() error { return a.watchPrograms(done) })
	g.Go(func() (err error) {
		defer close(done)
		version, err = a.boot(ctx)
		return err
	})
	return version, g.Wait()
}

// watchPrograms returns an error when etcd or the API server ends. The others are
// started again, and may do so while the API server is not ready.
func (a *attempt) watchPrograms(done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		case p, running := <-a.handle.Ended:
			switch {
			case !running:
				return fmt.Errorf("the supervisor ended: %s", a.lastWords(supervisor.Self))
			case p.Name == supervisor.Self:
				return fmt.Errorf("the supervisor ended: %s", p.Ended)
			case p.Name != etcd && p.Name != apiServer:
				continue
			}
			words := a.lastWords(p.Name)
			err := fmt.Errorf("%s ended (%s):\n\t%s", p.Name, p.Ended, words)
			if strings.Contains(words, "address already in use") {
				err = errors.Join(errPortTaken, err)
			}
			return err
		}
	}
}

// boot adds the nodes and waits for everything.
func (a *attempt) boot(ctx context.Context) (string, error) {
	kubeconfig := clusters.Kubeconfig(a.state, a.name)
	config, err := clusters.RESTConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make client: %w", err)
	}
	// kwok tries again only after a second when it finds no place for a node's lease.
	err = a.poll(ctx, "namespace of leases", func() error {
		_, err := client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceNodeLease, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	for i := range a.nodes {
		if err := a.addNode(ctx, client, nodeName(a.name, i)); err != nil {
			return "", err
		}
	}
	version := ""
	g, all := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		version, err = clusters.WaitReady(all, kubeconfig, clusters.Readiness{Nodes: a.nodes}, a.readyTimeout)
		return err
	})
	g.Go(func() error { return AwaitPods(all, client) })
	g.Go(func() error { return a.poll(all, "readyz", func() error { return get(all, client, "/readyz") }) })
	return version, g.Wait()
}

func get(ctx context.Context, client kubernetes.Interface, path string) error {
	return client.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Error()
}

// addNode creates a node as soon as the API server takes one.
func (a *attempt) addNode(ctx context.Context, client kubernetes.Interface, name string) error {
	node := newNode(name)
	return a.poll(ctx, "create node "+name, func() error {
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
}

// poll tries until it works.
func (a *attempt) poll(ctx context.Context, what string, try func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, apiPoll, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errNotReady) {
		return &clusters.Problem{
			What: fmt.Sprintf("the control plane is not ready after %v", a.readyTimeout), Fix: "make doctor",
			Err: fmt.Errorf("%s: %w", what, last),
		}
	}
	return fmt.Errorf("%s: %w", what, context.Cause(ctx))
}

// newNode is a node with room for any lab.
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
