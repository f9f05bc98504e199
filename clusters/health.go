package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// healthTimeout bounds the questions to the API server. One that works answers
	// within milliseconds; one that needs longer than this cannot judge anybody.
	healthTimeout = 10 * time.Second
	// enoughDisk is what a node needs in bytes to go on: the kubelets of kind
	// never report pressure, so the writes of etcd and of Pods would just fail.
	enoughDisk = 256 << 20
)

// Healthy says whether what a cluster shows can be trusted: its node containers
// run and have disk space, their services are at work, its API server is ready,
// its nodes are Ready and not short of anything, and their kubelets answer. If
// not, the error is a *Problem that names the cause.
func Healthy(ctx context.Context, p Provider, c *Cluster) error {
	if _, err := healthyMachines(ctx, p, c); err != nil {
		return err
	}
	api, err := newAPIHealth(c, healthTimeout)
	if err != nil {
		return err
	}
	return api.check(ctx)
}

// healthyMachines looks at the machines of the cluster, without its API server.
// A provider that cannot tell has no machines, and no problem.
func healthyMachines(ctx context.Context, p Provider, c *Cluster) ([]Node, error) {
	inspector, ok := p.(NodeInspector)
	if !ok {
		return nil, nil
	}
	nodes, err := inspector.Nodes(ctx, c.Name)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, problem(err, fixEngine, "cannot look at the nodes of cluster %s", c.Name)
	}
	if len(nodes) < c.Nodes {
		return nodes, &Problem{
			What: fmt.Sprintf("cluster %s has %d of its %d nodes left", c.Name, len(nodes), c.Nodes),
			Fix:  FixCluster,
		}
	}
	for _, node := range nodes {
		if err := healthyMachine(node); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

func healthyMachine(node Node) error {
	switch {
	case !node.Running:
		return &Problem{What: fmt.Sprintf("node %s is %s", node.Name, node.State), Fix: FixCluster}
	case node.LowOnDisk():
		return &Problem{
			What: fmt.Sprintf("node %s has %d MB of disk space left", node.Name, node.FreeDisk>>20),
			Fix:  "make doctor",
		}
	case len(node.Stopped) > 0:
		return &Problem{
			What: fmt.Sprintf("%s does not run on node %s", strings.Join(node.Stopped, " and "), node.Name),
			Fix:  FixCluster,
		}
	}
	return nil
}

// FixCluster takes a broken cluster away; the next command makes a new one. It
// is the Fix of a [Problem] that one cluster has, and not its machine.
const FixCluster = "make down"

// apiHealth asks one cluster's API server how it is.
type apiHealth struct {
	cluster *Cluster
	client  rest.Interface
}

// newAPIHealth prepares questions that take as long as timeout at most, each.
func newAPIHealth(c *Cluster, timeout time.Duration) (*apiHealth, error) {
	client, err := c.client(timeout)
	if err != nil {
		return nil, err
	}
	return &apiHealth{c, client.CoreV1().RESTClient()}, nil
}

// client asks the cluster's API server. Each question takes as long as timeout at most, and none waits for its turn.
func (c *Cluster) client(timeout time.Duration) (kubernetes.Interface, error) {
	config, err := RESTConfig(c.Kubeconfig)
	if err != nil {
		return nil, problem(err, FixCluster, "cluster %s cannot be reached", c.Name)
	}
	config.Timeout, config.QPS = timeout, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, problem(err, FixCluster, "cluster %s cannot be reached", c.Name)
	}
	return client, nil
}

// get asks once: retries hide failures.
func (h *apiHealth) get() *rest.Request { return h.client.Get().MaxRetries(0) }

func (h *apiHealth) check(ctx context.Context) error {
	if err := h.ready(ctx); err != nil {
		return h.unanswered(err, "the API server of cluster %s is not ready", h.cluster.Name)
	}
	var nodes corev1.NodeList
	if err := h.get().Resource("nodes").Do(ctx).Into(&nodes); err != nil {
		return h.unanswered(err, "cluster %s does not tell its nodes", h.cluster.Name)
	}
	if unready := unreadyNodes(nodes.Items); len(unready) > 0 {
		return problem(errors.New(strings.Join(unready, "; ")), "make doctor", "cluster %s is not healthy", h.cluster.Name)
	}
	return h.checkKubelets(ctx, nodes.Items)
}

// unanswered is the problem of a question without an answer: what, unless the API
// server was not there to be asked. It may go between any two questions.
func (h *apiHealth) unanswered(err error, what string, args ...any) error {
	if unreachable(err) {
		return problem(err, FixCluster, "the API server of cluster %s does not answer", h.cluster.Name)
	}
	return problem(err, FixCluster, what, args...)
}

// unreachable says that a server was not there, in contrast to one that is slow
// or that answers something unpleasant: those may be busy with a client's flood.
func unreachable(err error) bool {
	u, ok := errors.AsType[*url.Error](err)
	return ok && !u.Timeout()
}

const (
	// hookTimeout is what the hooks of an API server that just started may take. An
	// embedded cluster is handed out while two of them look once more, a second after
	// the start, at what is there.
	hookTimeout = 3 * time.Second
	// hookPoll is how often to ask meanwhile.
	hookPoll = 100 * time.Millisecond
)

// ready is nil when the API server says that it is ready. One that only waits for
// hooks of its start gets the time for them.
func (h *apiHealth) ready(ctx context.Context) error {
	for end := time.Now().Add(hookTimeout); ; {
		answer, err := h.get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		parts := unready(answer)
		if len(parts) == 0 {
			return err
		}
		if !onlyHooks(parts) || time.Now().After(end) {
			return errors.New("it waits for " + strings.Join(parts, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(hookPoll):
		}
	}
}

// unready picks out of an answer of /readyz what is not ready: of some forty lines
// those that begin with [-].
func unready(answer []byte) []string {
	var parts []string
	for line := range strings.Lines(string(answer)) {
		if part, ok := strings.CutPrefix(line, "[-]"); ok {
			part, _, _ = strings.Cut(part, " ")
			parts = append(parts, part)
		}
	}
	return parts
}

func onlyHooks(parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.HasPrefix(part, "poststarthook/") })
}

// checkKubelets asks the kubelets themselves. A lab cluster is told so late that
// a node is lost that its conditions say nothing about a kubelet that just
// stopped; see kind.yaml.
func (h *apiHealth) checkKubelets(ctx context.Context, nodes []corev1.Node) error {
	if !h.cluster.RealPods {
		return nil
	}
	for _, node := range nodes {
		err := h.get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("healthz").Do(ctx).Error()
		if err != nil {
			return h.unanswered(err, "the kubelet of node %s does not answer", node.Name)
		}
	}
	return nil
}
