package apiproxy_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// lasting is longer than any of these tests: each ends its outage itself.
const lasting = time.Hour

// get asks, and does not mind an error: an outage is one.
func get(t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

// watching is an API server whose watches send one event and then nothing.
func watching(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "" {
		return
	}
	fmt.Fprintln(w, "first")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// openWatch returns a watch that has sent its first event.
func openWatch(t *testing.T, proxy *apiproxy.Proxy, client *http.Client) *bufio.Reader {
	t.Helper()
	resp, err := get(t, client, proxy.URL()+"/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewReader(resp.Body)
	if _, err := events.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return events
}

func requireBroken(t *testing.T, watch *bufio.Reader) {
	t.Helper()
	broken := make(chan error, 1)
	go func() {
		_, err := watch.ReadString('\n')
		broken <- err
	}()
	select {
	case err := <-broken:
		if err == nil {
			t.Error("the watch brought another event")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the watch goes on")
	}
}

func TestAnUnavailableAPIServerSaysSoAndBreaksWatchesOff(t *testing.T) {
	var reached atomic.Int32
	proxy, client := start(t, func(w http.ResponseWriter, r *http.Request) { reached.Add(1); watching(w, r) })
	watch := openWatch(t, proxy, client)
	before := reached.Load()

	proxy.Outage(apiproxy.Unavailable, lasting)
	requireBroken(t, watch)
	answer := send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments")
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(answer), nil, nil)
	status, ok := obj.(*metav1.Status)
	if !ok || status.Code != http.StatusServiceUnavailable || status.Reason != metav1.StatusReasonServiceUnavailable {
		t.Errorf("the client got %q (%v)", answer, err)
	}
	if resp, err := get(t, client, proxy.URL()+"/api/v1/pods?watch=true"); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new watch got %v, %v", resp, err)
	}
	if reached.Load() != before {
		t.Error("the API server was asked during its outage")
	}
	want := []apiproxy.Request{
		{Index: 1, Verb: "create", Group: "apps", Resource: "deployments", Namespace: "n", Status: 503, Disturbed: true},
		{Index: 2, Verb: "watch", Resource: "pods", Status: 503, Disturbed: true},
	}
	if diff := cmp.Diff(want, proxy.Since(1), cmpopts.IgnoreFields(apiproxy.Request{}, "Time", "Answered")); diff != "" {
		t.Error(diff)
	}
	if proxy.Since(1)[0].Refused() {
		t.Error("the client is blamed for the outage")
	}
}

func TestAReadOnlyAPIServerRefusesWritesAndGoesOnWatching(t *testing.T) {
	more := make(chan struct{})
	proxy, client := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Error("a write reached the API server")
		}
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintln(w, "first")
			w.(http.Flusher).Flush()
			<-more
			fmt.Fprintln(w, "second")
		}
	})
	watch := openWatch(t, proxy, client)
	proxy.Outage(apiproxy.ReadOnly, lasting)
	answer := send(t, client, http.MethodPut, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/d")
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(answer), nil, nil)
	if status, ok := obj.(*metav1.Status); !ok || status.Code != http.StatusInternalServerError {
		t.Errorf("a write got %q (%v)", answer, err)
	}
	if resp, err := get(t, client, proxy.URL()+"/api/v1/pods"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a read got %v, %v", resp, err)
	}
	close(more)
	if line, err := watch.ReadString('\n'); line != "second\n" {
		t.Errorf("the watch brought %q, %v", line, err)
	}
	if got := proxy.Since(1)[0]; !got.Disturbed || got.Refused() || got.Status != http.StatusInternalServerError {
		t.Errorf("recorded %+v", got)
	}
}

func TestOnlyWritesOfOneKindAreRefusedWhileItsWebhookFails(t *testing.T) {
	for outage, refused := range map[apiproxy.Outage]string{apiproxy.NoDeployments: "deployments", apiproxy.NoMemcacheds: "memcacheds"} {
		proxy, client := start(t, func(http.ResponseWriter, *http.Request) {})
		proxy.Outage(outage, lasting)
		for i, tc := range []struct{ method, path, resource string }{
			{http.MethodPut, "/apis/apps/v1/namespaces/n/deployments/d", "deployments"},
			{http.MethodPost, "/apis/apps/v1/namespaces/n/deployments", "deployments"},
			{http.MethodGet, "/apis/apps/v1/namespaces/n/deployments/d", ""},
			{http.MethodPatch, "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m", "memcacheds"},
			{http.MethodPut, "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m/status", "memcacheds"},
			{http.MethodGet, "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m", ""},
		} {
			want := map[bool]int{true: http.StatusInternalServerError, false: http.StatusOK}[tc.resource == refused]
			send(t, client, tc.method, proxy.URL()+tc.path)
			if got := proxy.Since(i)[0]; got.Status != want || got.Disturbed != (tc.resource == refused) {
				t.Errorf("%s, %s %s: recorded %+v, want status %d", outage, tc.method, tc.path, got, want)
			}
		}
	}
}

func TestAnUnreachableAPIServerTakesNoConnection(t *testing.T) {
	proxy, client := start(t, watching)
	watch := openWatch(t, proxy, client)
	proxy.Outage(apiproxy.Unreachable, lasting)
	requireBroken(t, watch)
	if resp, err := get(t, client, proxy.URL()+"/api/v1/pods"); err == nil {
		t.Errorf("there was an answer: %s", resp.Status)
	}
	proxy.Outage(apiproxy.NoOutage, 0)
	if _, err := get(t, client, proxy.URL()+"/api/v1/pods"); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

// A write that was under way when the connection broke has no answer, and is no refusal.
func TestARequestCutOffByAnOutageIsMarked(t *testing.T) {
	arrived := make(chan struct{})
	proxy, client := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	answered := make(chan bool, 1)
	go func() {
		_, err := get(t, client, proxy.URL()+"/api/v1/namespaces/n/pods/p")
		answered <- err == nil
	}()
	<-arrived
	proxy.Outage(apiproxy.Unreachable, lasting)
	if <-answered {
		t.Error("the client got an answer")
	}
	deadline := time.Now().Add(10 * time.Second)
	for proxy.Count() == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // the server's side of it ends when it ends
	}
	want := []apiproxy.Request{{Verb: "get", Resource: "pods", Namespace: "n", Name: "p", Disturbed: true}}
	if diff := cmp.Diff(want, proxy.Since(0), cmpopts.IgnoreFields(apiproxy.Request{}, "Time", "Answered")); diff != "" {
		t.Error(diff)
	}
}

func TestAnOutageEndsByItself(t *testing.T) {
	proxy, client := start(t, watching)
	proxy.Outage(apiproxy.Unavailable, 50*time.Millisecond)
	deadline := time.Now().Add(10 * time.Second)
	for {
		resp, err := get(t, client, proxy.URL()+"/api/v1/pods")
		if err == nil && resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %v, %v", resp, err)
		}
	}
}

// Only a conflict can be what the disturbance provoked. A client that had no right to write, or whose
// write went through, is answered as ever.
func TestOnlyTheProvokedConflictIsMarked(t *testing.T) {
	answers := []int{http.StatusConflict, http.StatusForbidden, http.StatusOK, http.StatusConflict}
	asked := 0
	proxy, client := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[asked])
		asked++
	})
	provoking := true
	proxy.Disturb(apiproxy.Disturbance{Before: func(context.Context, apiproxy.Request) bool { return provoking }})
	for i := range answers {
		provoking = i < len(answers)-1
		send(t, client, http.MethodPut, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/d")
	}
	var disturbed, refused []bool
	for _, r := range proxy.Since(0) {
		disturbed, refused = append(disturbed, r.Disturbed), append(refused, r.Refused())
	}
	if diff := cmp.Diff([]bool{true, false, false, false}, disturbed); diff != "" {
		t.Errorf("disturbed: %s", diff)
	}
	if diff := cmp.Diff([]bool{false, true, false, true}, refused); diff != "" {
		t.Errorf("refused: %s", diff)
	}
}

func TestTheClientWaitsForBothSidesOfADisturbance(t *testing.T) {
	var order []string
	proxy, client := start(t, func(w http.ResponseWriter, _ *http.Request) {
		order = append(order, "API server")
		w.WriteHeader(http.StatusCreated)
	})
	proxy.Disturb(apiproxy.Disturbance{
		Before: func(_ context.Context, r apiproxy.Request) bool {
			order = append(order, "before "+r.Verb)
			return false
		},
		After: func(r apiproxy.Request) { order = append(order, fmt.Sprint("after ", r.Status)) },
	})
	send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments")
	order = append(order, "client")
	if diff := cmp.Diff([]string{"before create", "API server", "after 201", "client"}, order); diff != "" {
		t.Error(diff)
	}
	proxy.Disturb(apiproxy.Disturbance{})
	send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments")
	if len(order) != 5 {
		t.Errorf("after its end the disturbance went on: %q", order)
	}
}
