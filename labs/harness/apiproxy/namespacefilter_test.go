package apiproxy_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

func TestNamespaceFilterNarrowsListsAndWatches(t *testing.T) {
	two := apiproxy.NamespaceFilter{Hidden: []string{"a", "b"}}
	one := apiproxy.NamespaceFilter{Hidden: []string{"a"}}
	for _, tc := range []struct {
		filter       apiproxy.NamespaceFilter
		method, path string
		want         string
	}{
		{two, http.MethodGet, "/apis/apps/v1/deployments", "metadata.namespace!=a,metadata.namespace!=b"},
		{two, http.MethodGet, "/apis/apps/v1/deployments?watch=true", "metadata.namespace!=a,metadata.namespace!=b"},
		{one, http.MethodGet, "/apis/apps/v1/namespaces/b/deployments", ""},
		{one, http.MethodGet, "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dd", "metadata.name=d,metadata.namespace!=a"},
		{one, http.MethodGet, "/apis/apps/v1/namespaces/b/deployments/d", ""},
		{one, http.MethodGet, "/apis/apps/v1/watch/namespaces/b/deployments/d", ""},
		{one, http.MethodGet, "/api/v1/nodes", ""},
		{two, http.MethodGet, "/api/v1/namespaces?watch=true", "metadata.name!=a,metadata.name!=b"},
		{apiproxy.NamespaceFilter{}, http.MethodGet, "/apis/apps/v1/deployments", ""},
	} {
		arrived := ""
		tc.filter.Namespaced = func(_, resource string) (bool, error) { return resource != "nodes", nil }
		proxy, client := start(t, tc.filter, func(_ http.ResponseWriter, r *http.Request) { arrived = r.URL.Query().Get("fieldSelector") })
		send(t, client, tc.method, proxy.URL()+tc.path)
		if arrived != tc.want {
			t.Errorf("%s %s: selected by %q, want %q", tc.method, tc.path, arrived, tc.want)
		}
	}
}

func TestHiddenNamespaceIsForbidden(t *testing.T) {
	var reached []string
	proxy, client := start(t, apiproxy.NamespaceFilter{Hidden: []string{"a"}}, func(_ http.ResponseWriter, req *http.Request) {
		reached = append(reached, req.Method+" "+req.URL.Path)
	})
	send(t, client, http.MethodGet, proxy.URL()+"/apis/apps/v1/namespaces/a/deployments/x")
	send(t, client, http.MethodPut, proxy.URL()+"/apis/apps/v1/namespaces/b/deployments/x")
	if diff := cmp.Diff([]string{"PUT /apis/apps/v1/namespaces/b/deployments/x"}, reached); diff != "" {
		t.Errorf("asked of the API server: %s", diff)
	}
	if r := proxy.Since(0)[0]; r.Status != http.StatusForbidden || !r.Refused() {
		t.Errorf("recorded %s", r)
	}
}

func TestFilterErrorShowsNothing(t *testing.T) {
	filter := apiproxy.NamespaceFilter{Hidden: []string{"a"}, Namespaced: func(_, _ string) (bool, error) { return false, errors.New("timeout") }}
	arrived := false
	proxy, client := start(t, filter, func(http.ResponseWriter, *http.Request) { arrived = true })
	if status, _ := send(t, client, http.MethodGet, proxy.URL()+"/apis/apps/v1/deployments"); status != http.StatusServiceUnavailable || arrived {
		t.Errorf("answered %d, and the API server was asked: %v", status, arrived)
	}
	if got := proxy.Since(0); len(got) != 1 || got[0].Refused() {
		t.Errorf("the client is blamed: %+v", got)
	}
}
