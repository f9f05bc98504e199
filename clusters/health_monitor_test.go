package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// changingCluster plays a cluster that changes while it is watched.
type changingCluster struct {
	fake
	mu      sync.Mutex
	machine Node
	pods    []corev1.Pod
	readyz  http.HandlerFunc
	nodes   http.HandlerFunc // nil tells them
	kubelet http.HandlerFunc
}

func (a *changingCluster) Nodes(ctx context.Context, _ string) ([]Node, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []Node{a.machine}, ctx.Err()
}

// change changes something.
func (a *changingCluster) change(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
}

func good(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

func bad(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed", http.StatusInternalServerError)
}

// silent answers as late as a busy server.
func silent(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(monitorTimeout * 3 / 2):
	}
}

// broken closes the connection without an answer.
func broken(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func (a *changingCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	pods, handler, nodes := a.pods, a.readyz, a.nodes
	if strings.HasSuffix(r.URL.Path, "/proxy/healthz") {
		handler = a.kubelet
	}
	a.mu.Unlock()
	var list any
	switch r.URL.Path {
	case "/api/v1/nodes":
		if nodes != nil {
			nodes(w, r)
			return
		}
		list = corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: healthyWorld().nodes}
	case "/api/v1/namespaces/kube-system/pods":
		list = corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: pods}
	default:
		handler(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// controllers are two Pods of Kubernetes itself, the controllers and DNS, of which the first is in this state.
func controllers(restarts int32, running bool) []corev1.Pod {
	return []corev1.Pod{systemPod("kube-controller-manager", restarts, running), systemPod("kube-dns", 0, true)}
}

// systemPod is a Pod of Kubernetes itself with one container of its name.
func systemPod(name string, restarts int32, running bool) corev1.Pod {
	status := corev1.ContainerStatus{Name: name, RestartCount: restarts}
	if running {
		status.State.Running = &corev1.ContainerStateRunning{}
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-one", Namespace: "kube-system", UID: types.UID(name), Labels: map[string]string{"k8s-app": name}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

// startMonitor begins one over a healthy cluster, and returns after its first look. It needs a fake clock.
func startMonitor(t *testing.T) (*changingCluster, *HealthMonitor, context.Context) {
	t.Helper()
	a := &changingCluster{
		machine: Node{Name: "one", Running: true, State: "running", FreeDisk: 1 << 40, Killed: 3, Starts: map[string]int{"etcd": 1}},
		pods:    controllers(1, true), readyz: good, kubelet: good,
	}
	c := &Cluster{Name: "lab-test", Kubeconfig: serveInMemory(t, a), Nodes: 1, RealPods: true}
	v, ctx, err := MonitorHealth(t.Context(), a, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.End)
	time.Sleep(monitorInterval + monitorInterval/2)
	synctest.Wait()
	return a, v, ctx
}

func TestAClusterThatFaltersIsFoundOut(t *testing.T) {
	soon := 2 * monitorInterval
	for name, tc := range map[string]struct {
		change func(*changingCluster)
		lasts  time.Duration // of the change; 0 is for good
		within time.Duration // until the cluster is given up; 0 is never
		says   []string      // of the problem; none means that there is none
	}{
		"all is well": {func(*changingCluster) {}, soon, 0, nil},
		"the node is paused": {func(a *changingCluster) { a.machine.Running, a.machine.State, a.readyz = false, "paused", silent },
			0, soon + monitorTimeout, []string{"node one is paused"}},
		"the API server is not ready":                    {func(a *changingCluster) { a.readyz = bad }, 0, monitorTolerance + soon, []string{"API server", "it waits for etcd"}},
		"the API server hangs":                           {func(a *changingCluster) { a.readyz = silent }, 0, monitorTolerance + soon + monitorTimeout, []string{"API server"}},
		"the API server is slow for once":                {func(a *changingCluster) { a.readyz = silent }, soon, 0, nil},
		"the API server grumbles for once":               {func(a *changingCluster) { a.readyz = bad }, soon, 0, nil},
		"the API server goes, and the nodes were next":   {func(a *changingCluster) { a.nodes = broken }, 0, monitorTolerance + soon, []string{"API server"}},
		"the API server goes, and the kubelet was next":  {func(a *changingCluster) { a.kubelet = broken }, 0, monitorTolerance + soon, []string{"API server"}},
		"the API server is away for a while":             {func(a *changingCluster) { a.readyz = broken }, soon, 0, []string{"faltered while it was in use", "API server"}},
		"the kubelet is gone":                            {func(a *changingCluster) { a.kubelet = bad }, 0, monitorTolerance + soon, []string{"the kubelet of node one"}},
		"controllers start anew":                         {func(a *changingCluster) { a.pods = controllers(2, true) }, soon, 0, []string{"kube-controller-manager", "went down"}},
		"controllers are down":                           {func(a *changingCluster) { a.pods = controllers(1, false) }, soon, 0, []string{"kube-controller-manager", "went down"}},
		"DNS outgrows its memory":                        {func(a *changingCluster) { a.pods[1], a.machine.Killed = systemPod("kube-dns", 1, false), 5 }, soon, 0, nil},
		"a service starts anew":                          {func(a *changingCluster) { a.machine.Starts = map[string]int{"etcd": 2} }, soon, 0, []string{"etcd of node one", "started anew"}},
		"another Pod has its restarts":                   {func(a *changingCluster) { a.pods = controllers(7, true); a.pods[0].UID = "2" }, soon, 0, nil},
		"a Pod of its own goes over its limit of memory": {func(a *changingCluster) { a.machine.Killed = 5 }, soon, 0, nil},
		"memory runs out": {func(a *changingCluster) { a.machine.Killed, a.pods = 5, controllers(2, true) }, soon, 0,
			[]string{"memory ran out", "killed 2 programs", "went down"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, v, ctx := startMonitor(t)
				a.change(func() { tc.change(a) })
				if tc.within > 0 {
					requireGivenUp(ctx, t, tc.within)
				} else {
					requireKept(ctx, t, tc.lasts)
					a.change(func() { a.readyz = good })
				}
				requireProblem(t, v.Problem(t.Context()), tc.says)
			})
		})
	}
}

func requireGivenUp(ctx context.Context, t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-ctx.Done():
		if _, ok := errors.AsType[*Problem](context.Cause(ctx)); !ok {
			t.Errorf("the context ended because of %v, want a *Problem", context.Cause(ctx))
		}
	case <-time.After(within):
		t.Errorf("the cluster was not given up within %v", within)
	}
}

func requireKept(ctx context.Context, t *testing.T, lasts time.Duration) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Errorf("the cluster was given up: %v", context.Cause(ctx))
	case <-time.After(lasts):
	}
}

func requireProblem(t *testing.T, err error, says []string) {
	t.Helper()
	if len(says) == 0 {
		if err != nil {
			t.Errorf("Problem() = %v, want nil", err)
		}
		return
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok || p.Fix == "" || strings.Contains(p.Finding(), "fix:") {
		t.Fatalf("Problem() = %v, want a *Problem with one command that fixes it", err)
	}
	for _, want := range says {
		if !strings.Contains(p.Finding(), want) {
			t.Errorf("%q does not say %q", p.Finding(), want)
		}
	}
}

func TestTheEndOfAMonitorIsNoProblem(t *testing.T) {
	for name, readyz := range map[string]http.HandlerFunc{"between two looks": good, "during a look": silent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, v, ctx := startMonitor(t)
				a.change(func() { a.readyz = readyz })
				requireKept(ctx, t, monitorInterval)
				v.End()
				if !errors.Is(context.Cause(ctx), context.Canceled) {
					t.Errorf("the context ended because of %v", context.Cause(ctx))
				}
				a.change(func() { a.readyz = good })
				requireProblem(t, v.Problem(t.Context()), nil)
			})
		})
	}
}
