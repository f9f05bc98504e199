package apiproxy_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

func TestOutageRefusesWrites(t *testing.T) {
	const deployment, memcached = "/apis/apps/v1/namespaces/n/deployments/d", "/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m"
	writes := []string{http.MethodPost + " " + deployment, http.MethodPut + " " + deployment, http.MethodPatch + " " + memcached, http.MethodPut + " " + memcached + "/status"}
	reads := []string{http.MethodGet + " " + deployment, http.MethodGet + " " + memcached, http.MethodGet + " /api/v1/pods"}
	for outage, refused := range map[apiproxy.Outage][]string{
		apiproxy.NoOutage: nil, apiproxy.ReadOnly: writes, apiproxy.NoDeployments: writes[:2], apiproxy.NoMemcacheds: writes[2:],
	} {
		var served []string
		proxy, client := start(t, apiproxy.NamespaceFilter{}, func(_ http.ResponseWriter, r *http.Request) {
			served = append(served, r.Method+" "+r.URL.Path)
		})
		proxy.Outage(outage, time.Hour)
		var got []string
		for i, ask := range append(append([]string{}, writes...), reads...) {
			var method, path string
			_, _ = fmt.Sscan(ask, &method, &path)
			status, body := send(t, client, method, proxy.URL()+path)
			if r := proxy.Since(i)[0]; r.Disturbed != (status == http.StatusInternalServerError) || r.Refused() || r.Status != status {
				t.Errorf("%s, %s: recorded %+v", outage, ask, r)
			}
			if status == http.StatusOK {
				continue
			}
			got = append(got, ask)
			obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
			if answer, ok := obj.(*metav1.Status); !ok || !apierrors.IsInternalError(&apierrors.StatusError{ErrStatus: *answer}) {
				t.Errorf("%s, %s: the client got %q (%v)", outage, ask, body, err)
			}
		}
		if diff := cmp.Diff(refused, got); diff != "" || len(served) != len(writes)+len(reads)-len(refused) {
			t.Errorf("%s: the API server was asked %q; refused: %s", outage, served, diff)
		}
		proxy.Outage(outage, -time.Second)
		if status, _ := send(t, client, http.MethodPost, proxy.URL()+deployment); status != http.StatusOK {
			t.Errorf("%s is over, and a write is answered %d", outage, status)
		}
	}
}

// Only a conflict can be what the disturbance provoked.
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
