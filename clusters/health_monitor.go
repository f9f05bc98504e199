package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// monitorInterval is the time from one look to the next. It costs the API server a few requests in a second.
	monitorInterval = 500 * time.Millisecond
	// monitorTimeout bounds one question of a look. A missing answer is no news yet: the machine may be busy.
	monitorTimeout = 2 * time.Second
	// monitorTolerance is for how long a cluster may look bad before it is given up, in time in which this process was
	// served. An API server that is started anew is back sooner.
	monitorTolerance = 5 * time.Second
)

// HealthMonitor watches a cluster while somebody is judged on it. What is seen on a
// cluster that falters says nothing about anybody, even when all is well again at
// the end: a killed API server is back within seconds.
type HealthMonitor struct {
	provider Provider
	cluster  *Cluster
	api      *apiHealth
	give     context.CancelCauseFunc // gives the cluster up
	ended    chan struct{}

	// What follows is written until the monitor has ended, and read afterwards.
	starts map[container]int32 // of the system's containers, when the monitor began
	killed map[string]uint64   // [Node.Killed] by node, when it began
	served map[string]int      // [Node.Starts] by node and service, when it began
	away   error               // what was heard when the API server was away for the first time
	given  error               // why the cluster was given up
}

// MonitorHealth begins to watch a cluster. The context ends when ctx does, when the monitor is ended,
// and, with a *Problem as its cause, as soon as the cluster has to be given up: so
// nobody waits for it in vain.
func MonitorHealth(ctx context.Context, p Provider, c *Cluster) (*HealthMonitor, context.Context, error) {
	api, err := newAPIHealth(c, monitorTimeout)
	if err != nil {
		return nil, nil, err
	}
	ctx, give := context.WithCancelCause(ctx)
	v := &HealthMonitor{provider: p, cluster: c, api: api, give: give, ended: make(chan struct{})}
	go v.keep(ctx)
	return v, ctx, nil
}

// End ends the monitor and the context that came with it.
func (v *HealthMonitor) End() {
	v.give(context.Canceled)
	<-v.ended
}

func (v *HealthMonitor) keep(ctx context.Context) {
	defer close(v.ended)
	v.remember(ctx)
	tick := time.NewTicker(monitorInterval)
	defer tick.Stop()
	bad, before := time.Duration(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := v.api.check(ctx)
		elapsed := min(time.Since(before), monitorInterval+monitorTimeout)
		before = time.Now()
		if err == nil || ctx.Err() != nil {
			bad = 0
			continue
		}
		bad += elapsed
		final := v.examine(ctx, err, bad)
		if ctx.Err() != nil {
			return // the monitor is over; what failed now failed because of that
		}
		switch {
		case final != nil:
			v.given = final
			v.give(final)
			return
		case v.away == nil && unreachable(err):
			v.away = err
		}
	}
}

// examine is the problem for which a cluster that looks bad has to be given up,
// or nil. What has happened to its machines is certain; what its API server says,
// or does not say, becomes so with time.
func (v *HealthMonitor) examine(ctx context.Context, err error, bad time.Duration) error {
	if _, broken := healthyMachines(ctx, v.provider, v.cluster); broken != nil {
		return broken
	}
	if bad >= monitorTolerance {
		return err
	}
	return nil
}

// remember notes what is counted. A cluster that cannot be asked any more is about
// to be given up, and nothing needs to be counted.
func (v *HealthMonitor) remember(ctx context.Context) {
	v.starts, _ = v.api.starts(ctx)
	nodes, _ := healthyMachines(ctx, v.provider, v.cluster)
	v.killed = map[string]uint64{}
	for _, node := range nodes {
		v.killed[node.Name] = node.Killed
	}
	v.served = serviceStarts(nodes)
}

// serviceStarts puts the starts of all services together.
func serviceStarts(nodes []Node) map[string]int {
	starts := map[string]int{}
	for _, node := range nodes {
		for service, n := range node.Starts {
			starts[service+" of node "+node.Name] = n
		}
	}
	return starts
}

// startedAnew is a *Problem when a service ended while the cluster was in use, even
// if it is back.
func (v *HealthMonitor) startedAnew(ctx context.Context) error {
	nodes, _ := healthyMachines(ctx, v.provider, v.cluster)
	now := serviceStarts(nodes)
	for _, service := range slices.Sorted(maps.Keys(now)) {
		if before, known := v.served[service]; known && before < now[service] {
			return &Problem{What: service + " ended and was started anew", Fix: FixCluster}
		}
	}
	return nil
}

// Problem ends the monitor and says what was wrong with the cluster meanwhile, or
// is now, as a *Problem. It is nil when what was seen there can be trusted.
func (v *HealthMonitor) Problem(ctx context.Context) error {
	v.End()
	if v.given != nil {
		return v.explain(ctx, v.given)
	}
	err := Healthy(ctx, v.provider, v.cluster)
	if err == nil && v.away != nil {
		err = &Problem{What: fmt.Sprintf("cluster %s faltered while it was in use", v.cluster.Name), Fix: FixCluster, Err: cause(v.away)}
	}
	if err == nil {
		err = v.restarted(ctx)
	}
	if err == nil {
		err = v.startedAnew(ctx)
	}
	if err == nil {
		return nil
	}
	return v.explain(ctx, err)
}

// cause is err as the cause of another problem: without its own command.
func cause(err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return errors.New(p.Finding())
	}
	return err
}

// fixMemory makes room for a cluster; the doctor says how much it needs.
const fixMemory = "make down, then close other programs"

// explain adds to a problem that the memory was not enough, if it was not. On its
// own that is none: a Pod may be killed for a limit that it was given.
func (v *HealthMonitor) explain(ctx context.Context, err error) error {
	nodes, _ := healthyMachines(ctx, v.provider, v.cluster)
	for _, node := range nodes {
		before, known := v.killed[node.Name]
		if known && before < node.Killed {
			return &Problem{
				What: fmt.Sprintf("memory ran out, and the kernel of node %s killed %d programs", node.Name, node.Killed-before),
				Fix:  fixMemory, Err: cause(err),
			}
		}
	}
	return err
}

// container is one container of one Pod.
type container struct {
	pod  types.UID
	name string
}

// forPodsAlone are the Pods of Kubernetes, by their label k8s-app, that serve other Pods and nobody else: DNS, and kind's
// network. A check asks neither of them, and both have a limit of memory that whoever writes Services or policies can exceed.
var forPodsAlone = []string{"kube-dns", "kindnet"}

// starts counts how often each container of Kubernetes itself was started anew,
// and is -1 for one that does not run. It leaves out [forPodsAlone].
func (h *apiHealth) starts(ctx context.Context) (map[container]int32, error) {
	var pods corev1.PodList
	if err := h.get().Namespace("kube-system").Resource("pods").Do(ctx).Into(&pods); err != nil {
		return nil, h.unanswered(err, "cluster %s does not tell its Pods", h.cluster.Name)
	}
	starts := map[container]int32{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || slices.Contains(forPodsAlone, pod.Labels["k8s-app"]) {
			continue // it is meant to end, or its end means nothing
		}
		for _, status := range pod.Status.ContainerStatuses {
			starts[container{pod.UID, status.Name}] = status.RestartCount
			if status.State.Running == nil {
				starts[container{pod.UID, status.Name}] = -1
			}
		}
	}
	return starts, nil
}

// restarted is a *Problem when a container of Kubernetes itself is down, or was
// started anew during the monitor: while it was away, nothing that it does was done.
func (v *HealthMonitor) restarted(ctx context.Context) error {
	now, err := v.api.starts(ctx)
	if err != nil {
		return err
	}
	var names []string
	for c, n := range now {
		if before, known := v.starts[c]; known && before >= 0 && n != before {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &Problem{
		What: fmt.Sprintf("%s of cluster %s went down while it was in use", strings.Join(names, " and "), v.cluster.Name),
		Fix:  FixCluster,
	}
}
