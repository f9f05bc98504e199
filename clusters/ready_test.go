package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/example/operator-lab/clusters/pipetest"
)

// world is what a server that plays an API server shows.
type world struct {
	nodes       []corev1.Node
	deployments []appsv1.Deployment
	accounts    []corev1.ServiceAccount
	notReady    bool
}

// serve plays an API server that shows w and never changes, and returns a
// kubeconfig for it.
func serve(t *testing.T, w world) string {
	t.Helper()
	lists := map[string]any{
		"/api/v1/nodes": corev1.NodeList{
			TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: w.nodes},
		"/apis/apps/v1/namespaces/kube-system/deployments": appsv1.DeploymentList{
			TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"}, Items: w.deployments},
		"/api/v1/namespaces/default/serviceaccounts": corev1.ServiceAccountList{
			TypeMeta: metav1.TypeMeta{Kind: "ServiceAccountList", APIVersion: "v1"}, Items: w.accounts},
		"/version": map[string]string{"gitVersion": "v1.36.3"},
	}
	return serveInMemory(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		switch list, ok := lists[r.URL.Path]; {
		case r.URL.Path == "/readyz" && !w.notReady:
			_, _ = rw.Write([]byte("ok"))
		case r.URL.Path == "/readyz":
			http.Error(rw, "etcd failed", http.StatusInternalServerError)
		case !ok:
			http.NotFound(rw, r)
		case r.URL.Query().Has("sendInitialEvents"):
			// An API server without streaming lists; the client then lists and watches.
			http.Error(rw, "unknown field", http.StatusUnprocessableEntity)
		case r.URL.Query().Has("watch"):
			rw.WriteHeader(http.StatusOK)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			if err := json.NewEncoder(rw).Encode(list); err != nil {
				t.Error(err)
			}
		}
	}))
}

// serveInMemory plays an API server, also for a fake clock, and returns a kubeconfig for it.
func serveInMemory(t *testing.T, handler http.Handler) string {
	t.Helper()
	l, server := pipetest.Listen(), &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return writeKubeconfig(t, l.URL)
}

func writeKubeconfig(t *testing.T, url string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func node(name string, conditions ...corev1.NodeCondition) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: conditions},
	}
}

func ready(status corev1.ConditionStatus, message string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Message: message}
}

// healthyWorld is a cluster of one node with which nothing is wrong.
func healthyWorld() world {
	return world{
		nodes: []corev1.Node{node("one", ready(corev1.ConditionTrue, ""))},
		deployments: []appsv1.Deployment{{
			ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "kube-system"},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status:     appsv1.DeploymentStatus{UpdatedReplicas: 2, AvailableReplicas: 2},
		}},
		accounts: []corev1.ServiceAccount{{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}},
	}
}

func TestReadyCluster(t *testing.T) {
	version, err := WaitReady(t.Context(), serve(t, healthyWorld()), Readiness{Nodes: 1, DNS: true}, time.Minute)
	if err != nil || version != "v1.36.3" {
		t.Errorf("WaitReady() = %q, %v, want v1.36.3", version, err)
	}
}

func TestWhatIsNotReadyIsNamed(t *testing.T) {
	cases := map[string]struct {
		nodes int
		spoil func(*world)
		want  string
	}{
		"a node is missing": {2, func(*world) {}, "1 of 2 nodes"},
		"a node is not Ready": {1, func(w *world) {
			w.nodes[0] = node("one", ready(corev1.ConditionFalse, "cni plugin not initialized"))
		}, "node one is not Ready: cni plugin not initialized"},
		"a node has not reported": {1, func(w *world) { w.nodes[0] = node("one") }, "node one has not reported"},
		"CoreDNS is not available": {1, func(w *world) {
			w.deployments[0].Status.AvailableReplicas = 1
		}, "CoreDNS has 1 of 2 Pods available"},
		"CoreDNS is being replaced": {1, func(w *world) {
			w.deployments[0].Status.UpdatedReplicas = 0
		}, "CoreDNS has 0 of 2 Pods available"},
		"the change of CoreDNS is not seen": {1, func(w *world) {
			w.deployments[0].Generation = 2
		}, "CoreDNS has 0 of 2 Pods available"},
		"CoreDNS is missing":            {1, func(w *world) { w.deployments = nil }, "coredns"},
		"the ServiceAccount is missing": {1, func(w *world) { w.accounts = nil }, "ServiceAccount default"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := healthyWorld()
				test.spoil(&w)
				_, err := WaitReady(t.Context(), serve(t, w), Readiness{Nodes: test.nodes, DNS: true}, time.Second)
				if _, ok := errors.AsType[*Problem](err); !ok {
					t.Fatalf("WaitReady() = %v, want a *Problem", err)
				}
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %q does not say %q", err, test.want)
				}
				missing, err := Unready(t.Context(), serve(t, w), Readiness{Nodes: test.nodes, DNS: true})
				if err != nil || !strings.Contains(strings.Join(missing, "; "), test.want) {
					t.Errorf("Unready() = %q, %v, want %q", missing, err, test.want)
				}
			})
		})
	}
}

func TestWaitingForReadinessEndsWithItsContext(t *testing.T) {
	w := healthyWorld()
	w.nodes = nil
	kubeconfig := serve(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := WaitReady(ctx, kubeconfig, Readiness{Nodes: 1}, time.Minute)
	if _, ok := errors.AsType[*Problem](err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("WaitReady() = %v, want the end of the context and no *Problem", err)
	}
}

// inspected is a provider whose nodes are as given.
type inspected struct {
	fake
	nodes []Node
}

func (i *inspected) Nodes(context.Context, string) ([]Node, error) { return i.nodes, nil }

func TestHealthy(t *testing.T) {
	good := Node{Name: "one", Running: true, State: "running", FreeDisk: 1 << 40}
	cases := map[string]struct {
		node  Node
		spoil func(*world)
		want  string // "" = healthy
	}{
		"healthy":      {good, func(*world) {}, ""},
		"disk unknown": {Node{Name: "one", Running: true}, func(*world) {}, ""},
		"node paused":  {Node{Name: "one", State: "paused"}, func(*world) {}, "node one is paused"},
		"disk full":    {Node{Name: "one", Running: true, FreeDisk: 1 << 20}, func(*world) {}, "1 MB of disk space"},
		"API server":   {good, func(w *world) { w.notReady = true }, "API server"},
		"node NotReady": {good, func(w *world) {
			w.nodes[0] = node("one", ready(corev1.ConditionUnknown, "kubelet stopped"))
		}, "kubelet stopped"},
		"memory pressure": {good, func(w *world) {
			w.nodes[0].Status.Conditions = append(w.nodes[0].Status.Conditions,
				corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue})
		}, "MemoryPressure"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			w := healthyWorld()
			test.spoil(&w)
			c := &Cluster{Name: "lab-test", Kubeconfig: serve(t, w), Nodes: 1}
			err := Healthy(t.Context(), &inspected{nodes: []Node{test.node}}, c)
			if test.want == "" {
				if err != nil {
					t.Errorf("Healthy() = %v, want nil", err)
				}
				return
			}
			problem, ok := errors.AsType[*Problem](err)
			if !ok || !strings.Contains(err.Error(), test.want) || problem.Fix == "" {
				t.Errorf("Healthy() = %v, want a *Problem about %q with a command that fixes it", err, test.want)
			}
		})
	}
}

func TestHealthyMissesNodes(t *testing.T) {
	c := &Cluster{Name: "lab-test", Kubeconfig: serve(t, healthyWorld()), Nodes: 1}
	if err := Healthy(t.Context(), &inspected{}, c); err == nil || !strings.Contains(err.Error(), "0 of its 1 nodes") {
		t.Errorf("Healthy() = %v, want that the node is gone", err)
	}
}

func TestHealthyWithoutAServer(t *testing.T) {
	c := &Cluster{Name: "lab-test", Kubeconfig: writeKubeconfig(t, "http://127.0.0.1:1")} // nobody listens there
	if _, ok := errors.AsType[*Problem](Healthy(t.Context(), &fake{}, c)); !ok {
		t.Error("a server that is gone is no *Problem")
	}
	if err := os.Remove(c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*Problem](Healthy(t.Context(), &fake{}, c)); !ok {
		t.Error("a kubeconfig that is gone is no *Problem")
	}
}
