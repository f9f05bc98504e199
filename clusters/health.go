package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/clusters/internal/ready"
)

const (
	// healthTimeout bounds a look at what the API server shows. One that works answers within milliseconds; what one shows
	// that needs longer than this cannot be trusted.
	healthTimeout = 10 * time.Second
	// lowDisk is what a node needs in bytes to go on: the kubelets of kind never report pressure, so the writes of etcd
	// and of Pods would just fail.
	lowDisk = 256 << 20
)

// Healthy says whether what a cluster shows can be trusted: its node containers run and have disk space, their services
// are at work, its API server is ready, its nodes are Ready and not short of anything, and their kubelets answer. If not,
// the error is a *Problem that names the cause.
func (m *Manager) Healthy(ctx context.Context, c *Cluster) error {
	if err := m.healthyNodes(ctx, c); err != nil {
		return err
	}
	client, err := newClient(c)
	if err != nil {
		return err
	}
	return healthyAPI(ctx, client, c, healthTimeout)
}

// healthyNodes looks at the machines of the cluster, without its API server.
func (m *Manager) healthyNodes(ctx context.Context, c *Cluster) error {
	nodes, err := m.provider.Nodes(ctx, c.Name)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return problem(err, ErrNoEngine, "cannot look at the nodes of cluster %s", c.Name)
	case len(nodes) < c.Nodes:
		return &Problem{What: fmt.Sprintf("cluster %s has %d of its %d nodes left", c.Name, len(nodes), c.Nodes), Reason: ErrBroken}
	}
	for _, node := range nodes {
		switch {
		case !node.Running:
			return &Problem{What: fmt.Sprintf("node %s is %s", node.Name, node.State), Reason: ErrBroken}
		case node.FreeDisk > 0 && node.FreeDisk < lowDisk: // a matter of its machine: a new cluster would have no more
			return &Problem{What: fmt.Sprintf("node %s has %d MB of disk space left", node.Name, node.FreeDisk>>20)}
		case len(node.Stopped) > 0:
			return &Problem{What: fmt.Sprintf("%s does not run on node %s", strings.Join(node.Stopped, " and "), node.Name), Reason: ErrBroken}
		}
	}
	return nil
}

// newClient asks the cluster's API server, without a limit of questions in a second.
func newClient(c *Cluster) (kubernetes.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, problem(err, ErrBroken, "cluster %s cannot be reached", c.Name)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, problem(err, ErrBroken, "cluster %s cannot be reached", c.Name)
	}
	return client, nil
}

// get asks once: retries hide failures.
func get(client kubernetes.Interface) *rest.Request {
	return client.CoreV1().RESTClient().Get().MaxRetries(0)
}

// healthyAPI looks at what the API server shows.
func healthyAPI(ctx context.Context, client kubernetes.Interface, c *Cluster, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := readyAPI(ctx, client); err != nil {
		return unanswered(err, c, "the API server of cluster %s is not ready", c.Name)
	}
	var nodes corev1.NodeList
	if err := get(client).Resource("nodes").Do(ctx).Into(&nodes); err != nil {
		return unanswered(err, c, "cluster %s does not list its nodes", c.Name)
	}
	if unready := ready.UnreadyNodes(nodes.Items); len(unready) > 0 {
		return problem(errors.New(strings.Join(unready, "; ")), nil, "cluster %s is not healthy", c.Name)
	}
	if !c.RealPods {
		return nil
	}
	// kind.yaml has the API server notice so late that a node is lost that a node's conditions say nothing about a
	// kubelet that just stopped.
	for _, node := range nodes.Items {
		err := get(client).Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("healthz").Do(ctx).Error()
		if err != nil {
			return unanswered(err, c, "the kubelet of node %s does not answer", node.Name)
		}
	}
	return nil
}

// unanswered is the problem of a question without an answer: what, unless the API server was not there to be asked.
func unanswered(err error, c *Cluster, what string, args ...any) error {
	if unreachable(err) {
		return problem(err, ErrBroken, "the API server of cluster %s does not answer", c.Name)
	}
	return problem(err, ErrBroken, what, args...)
}

// unreachable says that a server was not there, in contrast to one that is slow or that answers something unpleasant:
// those may be busy with a client's flood.
func unreachable(err error) bool {
	u, ok := errors.AsType[*url.Error](err)
	return ok && !u.Timeout()
}

// readyAPI is nil when the API server says that it is ready.
func readyAPI(ctx context.Context, client kubernetes.Interface) error {
	answer, err := get(client).AbsPath("/readyz").DoRaw(ctx)
	var waits []string
	for line := range strings.Lines(string(answer)) {
		if part, ok := strings.CutPrefix(line, "[-]"); ok { // one of some forty parts, that is not ready
			waits = append(waits, strings.Fields(part)[0])
		}
	}
	if err != nil && len(waits) > 0 {
		err = errors.New("it waits for " + strings.Join(waits, ", "))
	}
	return err
}

const (
	// monitorInterval is the time from one look to the next. It costs the API server a few requests in a second.
	monitorInterval = 500 * time.Millisecond
	// monitorTimeout bounds one look. A missing answer is no news yet: the machine may be busy.
	monitorTimeout = 2 * time.Second
	// monitorTolerance is for how long a cluster may look bad before it is given up, in time in which this process got its
	// turn. An API server that is started anew is back sooner.
	monitorTolerance = 5 * time.Second
)

// Monitor watches a cluster while it is in use. What is seen on a cluster that was interrupted says nothing about the code
// under test, even when all is well again at the end: a killed API server is back within seconds.
type Monitor struct {
	manager *Manager
	cluster *Cluster
	client  kubernetes.Interface
	cancel  context.CancelCauseFunc
	ended   chan struct{}

	// What follows is written until the monitor has ended, and read afterwards.
	firstOutage error     // what was heard when the API server was away for the first time
	cause       error     // why the cluster was given up
	Trusted     time.Time // until when what was seen counts although Problem names one: when the last look before it began
}

// Monitor begins to watch a cluster. The context ends when ctx does, when the monitor is ended, and, with a *Problem as its
// cause, as soon as the cluster has to be given up: so nobody waits for it in vain.
func (m *Manager) Monitor(ctx context.Context, c *Cluster) (*Monitor, context.Context, error) {
	client, err := newClient(c)
	if err != nil {
		return nil, nil, err
	}
	w, ctx := m.monitor(ctx, c, client)
	return w, ctx, nil
}

func (m *Manager) monitor(ctx context.Context, c *Cluster, client kubernetes.Interface) (*Monitor, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Monitor{manager: m, cluster: c, client: client, cancel: cancel, ended: make(chan struct{}), Trusted: time.Now()}
	go w.watch(ctx)
	return w, ctx
}

// End ends the monitor and the context that came with it.
func (w *Monitor) End() {
	w.cancel(context.Canceled)
	<-w.ended
}

func (w *Monitor) watch(ctx context.Context) {
	defer close(w.ended)
	tick := time.NewTicker(monitorInterval)
	defer tick.Stop()
	bad, before := time.Duration(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := healthyAPI(ctx, w.client, w.cluster, monitorTimeout)
		if err == nil && w.firstOutage == nil {
			w.Trusted = began
		}
		elapsed := min(time.Since(before), monitorInterval+monitorTimeout)
		before = time.Now()
		if err == nil || ctx.Err() != nil {
			bad = 0
			continue
		}
		bad += elapsed
		// What has happened to its machines is certain; what its API server says, or does not say, becomes so with time.
		final := w.manager.healthyNodes(ctx, w.cluster)
		if final == nil && bad >= monitorTolerance {
			final = err
		}
		if ctx.Err() != nil {
			return // the monitor is over; what failed now failed because of that
		}
		if final != nil {
			w.cause = final
			w.cancel(final)
			return
		}
		if w.firstOutage == nil && unreachable(err) {
			w.firstOutage = err
		}
	}
}

// Problem ends the monitor and says what was wrong with the cluster meanwhile, or is now, as a *Problem. It is nil when
// what was seen there can be trusted.
func (w *Monitor) Problem(ctx context.Context) error {
	w.End()
	if w.cause != nil {
		return w.cause
	}
	if err := w.manager.healthyNodes(ctx, w.cluster); err != nil {
		return err
	}
	if err := healthyAPI(ctx, w.client, w.cluster, healthTimeout); err != nil {
		return err
	}
	if w.firstOutage != nil {
		return &Problem{What: fmt.Sprintf("cluster %s was interrupted while it was in use", w.cluster.Name), Reason: ErrBroken, Err: w.firstOutage}
	}
	return nil
}
