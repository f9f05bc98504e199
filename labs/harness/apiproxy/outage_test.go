package apiproxy_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

func TestOutageRefusesWrites(t *testing.T) {
	const deployment, memcached = "/apis/apps/v1/namespaces/n/deployments/d", "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m"
	asks := [][2]string{{http.MethodPost, deployment}, {http.MethodPatch, memcached}, {http.MethodPut, memcached + "/status"}, {http.MethodGet, deployment}, {http.MethodGet, memcached}}
	for outage, want := range map[string][]int{
		"":            {200, 200, 200, 200, 200},
		"deployments": {500, 200, 200, 200, 200},
		"memcacheds":  {200, 500, 500, 200, 200},
	} {
		proxy, client := start(t, apiproxy.NamespaceFilter{}, func(http.ResponseWriter, *http.Request) {})
		proxy.Disturb(apiproxy.Disturbance{Outage: outage})
		var got []int
		for i, ask := range asks {
			status, body := send(t, client, ask[0], proxy.URL()+ask[1])
			got = append(got, status)
			if r := proxy.Since(i)[0]; r.Disturbed != (status == http.StatusInternalServerError) || r.Refused() || r.Status != status {
				t.Errorf("%q, %v: recorded %+v", outage, ask, r)
			}
			obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
			if answer, ok := obj.(*metav1.Status); status != http.StatusOK && (!ok || !apierrors.IsInternalError(&apierrors.StatusError{ErrStatus: *answer})) {
				t.Errorf("%q, %v: the client got %q (%v)", outage, ask, body, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", outage, diff)
		}
	}
}

// Before may provoke conflicts only: every other answer is the client's own.
func TestOnlyProvokedConflictIsDisturbed(t *testing.T) {
	answers := []int{http.StatusConflict, http.StatusForbidden, http.StatusOK, http.StatusConflict}
	asked := 0
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, _ *http.Request) {
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
	if diff := cmp.Diff([][]bool{{true, false, false, false}, {false, true, false, true}}, [][]bool{disturbed, refused}); diff != "" {
		t.Error(diff)
	}
}

func TestClientWaitsForDisturbance(t *testing.T) {
	var order []string
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, _ *http.Request) {
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
	proxy.Disturb(apiproxy.Disturbance{})
	send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments")
	if diff := cmp.Diff([]string{"before create", "API server", "after 201", "client", "API server"}, order); diff != "" {
		t.Error(diff)
	}
}
