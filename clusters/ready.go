package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/example/operator-lab/clusters/restconfig"
)

// RESTConfig reads the kubeconfig of a cluster, as [restconfig.Load] does.
func RESTConfig(kubeconfig string) (*rest.Config, error) { return restconfig.Load(kubeconfig) }

// Readiness is what a cluster must show to be ready.
type Readiness struct {
	// Nodes is how many there have to be, all of them Ready.
	Nodes int
	// DNS says whether CoreDNS has to be available. Without real Pods there is none.
	DNS bool
}

// Readiness is what the cluster showed when it was handed out.
func (c *Cluster) Readiness() Readiness { return Readiness{Nodes: c.Nodes, DNS: c.RealPods} }

// WaitReady returns the version of the API server behind kubeconfig as soon as
// the cluster has the wanted nodes, all of them Ready, CoreDNS is available where
// it is wanted, and the default ServiceAccount exists. After timeout it returns a
// *Problem that says what was not ready.
func WaitReady(ctx context.Context, kubeconfig string, want Readiness, timeout time.Duration) (string, error) {
	client, err := connect(kubeconfig)
	if err != nil {
		return "", err
	}
	if err := watchReady(ctx, client, want, timeout); err != nil {
		return "", err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("read version of the API server: %w", err)
	}
	return version.GitVersion, nil
}

// Unready says in words what the cluster behind kubeconfig does not show of what is wanted, nothing when it is ready. It
// looks once, however long the answers take.
func Unready(ctx context.Context, kubeconfig string, want Readiness) ([]string, error) {
	client, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	accounts, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list ServiceAccounts: %w", err)
	}
	deployments, err := client.AppsV1().Deployments(dnsNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	return missing(want, nodes.Items, accounts.Items, deployments.Items), nil
}

func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := RESTConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// watchReady keeps a local copy of the kinds of objects that tell whether a cluster
// is ready, and looks at it after every change.
func watchReady(ctx context.Context, client kubernetes.Interface, want Readiness, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errNotReady)
	defer cancel()
	// A server that is still starting is what is being waited for. It needs no line
	// in the log for each refused connection.
	ctx = klog.NewContext(ctx, logr.Discard())
	changed := make(chan struct{}, 1)
	core := client.CoreV1().RESTClient()
	nodes := watch(ctx, core, "nodes", "", &corev1.Node{}, changed)
	accounts := watch(ctx, core, "serviceaccounts", metav1.NamespaceDefault, &corev1.ServiceAccount{}, changed)
	deployments := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if want.DNS {
		deployments = watch(ctx, client.AppsV1().RESTClient(), "deployments", dnsNamespace, &appsv1.Deployment{}, changed)
	}
	for {
		missing := missing(want, items[corev1.Node](nodes), items[corev1.ServiceAccount](accounts), items[appsv1.Deployment](deployments))
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errNotReady) {
				return ctx.Err()
			}
			return &Problem{
				What: fmt.Sprintf("cluster is not ready after %v", timeout),
				Fix:  "make doctor",
				Err:  errors.New(strings.Join(missing, "; ")),
			}
		}
	}
}

// errNotReady is the cause of a context that ended because the cluster took too
// long, in contrast to one that the caller ended.
var errNotReady = errors.New("not ready in time")

// watch lists and watches one kind of object and says after each change that
// there was one.
func watch(ctx context.Context, client cache.Getter, resource, namespace string, object runtime.Object, changed chan<- struct{}) cache.Store {
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()),
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(_, _ any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
	go controller.RunWithContext(ctx)
	return store
}

// items are the objects in a store, which are of one type.
func items[T any](store cache.Store) (all []T) {
	for _, object := range store.List() {
		all = append(all, *object.(*T))
	}
	return all
}

// missing says in words what is not ready yet.
func missing(want Readiness, nodes []corev1.Node, accounts []corev1.ServiceAccount, deployments []appsv1.Deployment) []string {
	var missing []string
	if len(nodes) < want.Nodes {
		missing = append(missing, fmt.Sprintf("%d of %d nodes are known", len(nodes), want.Nodes))
	}
	missing = append(missing, unreadyNodes(nodes)...)
	if want.DNS {
		missing = append(missing, missingDNS(deployments)...)
	}
	if !slices.ContainsFunc(accounts, func(a corev1.ServiceAccount) bool { return a.Name == "default" }) {
		missing = append(missing, "the ServiceAccount default in namespace default does not exist")
	}
	return missing
}

func missingDNS(deployments []appsv1.Deployment) []string {
	i := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool { return d.Name == dnsName })
	if i < 0 {
		return []string{"the Deployment coredns in namespace kube-system does not exist"}
	}
	deployment := deployments[i]
	want, status := int32(1), deployment.Status
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	// While a change is rolled out, the old Pods may be available for the last time.
	available := min(status.UpdatedReplicas, status.AvailableReplicas)
	if status.ObservedGeneration < deployment.Generation {
		available = 0
	}
	if available < want {
		return []string{fmt.Sprintf("CoreDNS has %d of %d Pods available", available, want)}
	}
	return nil
}

// unreadyNodes says about each node that is not Ready, or that is short of
// something, why.
func unreadyNodes(nodes []corev1.Node) []string {
	var result []string
	for _, node := range nodes {
		ready := "has not reported yet"
		for _, condition := range node.Status.Conditions {
			switch {
			case condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue:
				ready = ""
			case condition.Type == corev1.NodeReady:
				ready = "is not Ready: " + condition.Message
			case condition.Status == corev1.ConditionTrue:
				// All other conditions of a node tell of a shortage.
				result = append(result, fmt.Sprintf("node %s has %s: %s", node.Name, condition.Type, condition.Message))
			}
		}
		if ready != "" {
			result = append(result, fmt.Sprintf("node %s %s", node.Name, ready))
		}
	}
	slices.Sort(result)
	return result
}
