package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restfake "k8s.io/client-go/rest/fake"
)

// changing is a cluster that changes while it is watched: its machine, and an API server in memory.
type changing struct {
	fake
	mu      sync.Mutex
	machine Node
	readyz  answer
	nodes   answer // nil lists them
	kubelet answer
}

// answer is what the API server says to a question.
type answer func(ctx context.Context) (code int, body string, err error)

func (c *changing) Nodes(ctx context.Context, _ string) ([]Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []Node{c.machine}, ctx.Err()
}

func (c *changing) change(what func(*changing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(c)
}

func good(context.Context) (int, string, error) { return http.StatusOK, "ok", nil }

func bad(context.Context) (int, string, error) {
	return http.StatusInternalServerError, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed", nil
}

// silent gives no answer in time.
func silent(ctx context.Context) (int, string, error) {
	<-ctx.Done()
	return 0, "", os.ErrDeadlineExceeded
}

// broken closes the connection.
func broken(context.Context) (int, string, error) { return 0, "", io.EOF }

func (c *changing) do(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	say, nodes := c.readyz, c.nodes
	if strings.HasSuffix(req.URL.Path, "/proxy/healthz") {
		say = c.kubelet
	}
	c.mu.Unlock()
	list := func(object any) answer {
		return func(context.Context) (int, string, error) {
			data, err := json.Marshal(object)
			return http.StatusOK, string(data), err
		}
	}
	switch {
	case strings.HasSuffix(req.URL.Path, "/nodes") && nodes != nil:
		say = nodes
	case strings.HasSuffix(req.URL.Path, "/nodes"):
		ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		say = list(corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: ready}}}})
	}
	code, body, err := say(req.Context())
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// startMonitor begins one over a healthy cluster, and returns after its first look. It needs a fake clock.
func startMonitor(t *testing.T) (*changing, *Monitor, context.Context) {
	t.Helper()
	c := &changing{
		machine: Node{Name: "one", Running: true, State: "running", FreeDisk: 1 << 40},
		readyz:  good, kubelet: good,
	}
	client := kubernetes.New(&restfake.RESTClient{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(), GroupVersion: corev1.SchemeGroupVersion,
		VersionedAPIPath: "/api/v1", Client: restfake.CreateHTTPClient(c.do),
	})
	w, ctx := newManager(t, t.TempDir(), c).monitor(t.Context(), &Cluster{Name: "lab-test", Nodes: 1, RealPods: true}, client)
	t.Cleanup(w.End)
	time.Sleep(monitorInterval + monitorInterval/2)
	synctest.Wait()
	return c, w, ctx
}

func TestMonitor(t *testing.T) {
	soon := 2 * monitorInterval
	for name, tc := range map[string]struct {
		change func(*changing)
		lasts  time.Duration // of the change; 0 is for good
		within time.Duration // until the cluster is given up; 0 is never
		says   []string      // of the problem; none means that there is none
	}{
		"all is well": {func(*changing) {}, soon, 0, nil},
		"node paused": {func(c *changing) { c.machine.Running, c.machine.State, c.readyz = false, "paused", silent },
			0, soon + monitorTimeout, []string{"node one is paused"}},
		"API server not ready":           {func(c *changing) { c.readyz = bad }, 0, monitorTolerance + soon, []string{"API server", "it waits for etcd"}},
		"API server hangs":               {func(c *changing) { c.readyz = silent }, 0, monitorTolerance + soon + monitorTimeout, []string{"API server"}},
		"API server slow for once":       {func(c *changing) { c.readyz = silent }, soon, 0, nil},
		"API server not ready for once":  {func(c *changing) { c.readyz = bad }, soon, 0, nil},
		"API server away before nodes":   {func(c *changing) { c.nodes = broken }, 0, monitorTolerance + soon, []string{"API server"}},
		"API server away before kubelet": {func(c *changing) { c.kubelet = broken }, 0, monitorTolerance + soon, []string{"API server"}},
		"API server away for a while":    {func(c *changing) { c.readyz = broken }, soon, 0, []string{"interrupted while it was in use"}},
		"kubelet away":                   {func(c *changing) { c.kubelet = bad }, 0, monitorTolerance + soon, []string{"the kubelet of node one"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, w, ctx := startMonitor(t)
				changed := time.Now()
				c.change(tc.change)
				if tc.within > 0 {
					requireGivenUp(ctx, t, tc.within)
				} else {
					requireKept(ctx, t, tc.lasts)
					c.change(func(c *changing) { c.readyz = good })
				}
				requireProblem(t, w.Problem(t.Context()), tc.says)
				if ago := changed.Sub(w.Trusted); tc.says != nil && (ago < 0 || ago > monitorInterval) {
					t.Errorf("trusted until %s before the change, want the last look before it", ago)
				}
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
	if !errors.Is(err, ErrBroken) {
		t.Fatalf("Problem() = %v, want ErrBroken", err)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestMonitorEndIsNoProblem(t *testing.T) {
	for name, readyz := range map[string]answer{"between two looks": good, "during a look": silent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, w, ctx := startMonitor(t)
				c.change(func(c *changing) { c.readyz = readyz })
				requireKept(ctx, t, monitorInterval)
				w.End()
				if !errors.Is(context.Cause(ctx), context.Canceled) {
					t.Errorf("the context ended because of %v", context.Cause(ctx))
				}
				c.change(func(c *changing) { c.readyz = good })
				requireProblem(t, w.Problem(t.Context()), nil)
			})
		})
	}
}
