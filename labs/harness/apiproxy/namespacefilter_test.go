package apiproxy_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

func TestANamespaceFilterNarrowsWhatIsSelectedAndNothingElse(t *testing.T) {
	two := apiproxy.NamespaceFilter{Hidden: []string{"a", "b"}}
	one := apiproxy.NamespaceFilter{Hidden: []string{"a"}}
	for _, tc := range []struct {
		filter       apiproxy.NamespaceFilter
		method, path string
		want         string
	}{
		{two, http.MethodGet, "/apis/apps/v1/deployments", "metadata.namespace!=a,metadata.namespace!=b"},
		{two, http.MethodGet, "/apis/apps/v1/deployments?watch=true", "metadata.namespace!=a,metadata.namespace!=b"},
		{one, http.MethodGet, "/apis/apps/v1/deployments", "metadata.namespace!=a"},
		{one, http.MethodGet, "/apis/apps/v1/namespaces/b/deployments", "metadata.namespace!=a"},
		{one, http.MethodDelete, "/apis/apps/v1/namespaces/b/deployments", "metadata.namespace!=a"},
		{one, http.MethodGet, "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dd", "metadata.name=d,metadata.namespace!=a"},
		{one, http.MethodGet, "/apis/apps/v1/namespaces/b/deployments/d", ""},
		{one, http.MethodPost, "/apis/apps/v1/namespaces/b/deployments", ""},
		{one, http.MethodGet, "/apis/apps/v1/watch/namespaces/b/deployments/d", ""},
		{one, http.MethodGet, "/apis/apps/v1/watch/namespaces/b/deployments", "metadata.namespace!=a"},
		{one, http.MethodGet, "/api/v1/nodes", ""},
		{one, http.MethodGet, "/api/v1/namespaces", "metadata.name!=a"},
		{two, http.MethodGet, "/api/v1/namespaces?watch=true", "metadata.name!=a,metadata.name!=b"},
		{one, http.MethodGet, "/api/v1/namespaces/b", ""},
		{one, http.MethodGet, "/version", ""},
		{apiproxy.NamespaceFilter{}, http.MethodGet, "/apis/apps/v1/deployments", ""},
	} {
		var arrived []string
		tc.filter.Namespaced = func(_, resource string) (bool, error) { return resource != "nodes", nil }
		proxy, client := startWith(t, tc.filter, func(_ http.ResponseWriter, r *http.Request) {
			arrived = append(arrived, r.URL.Query()["fieldSelector"]...)
		})
		send(t, client, tc.method, proxy.URL()+tc.path)
		var want []string
		if tc.want != "" {
			want = []string{tc.want}
		}
		if diff := cmp.Diff(want, arrived); diff != "" {
			t.Errorf("%s %s: %s", tc.method, tc.path, diff)
		}
	}
}

// A client that saw for a while what it should not would spoil a check.
// Managers of several processes are one learner's. Each could write for another what a check counts there.
func TestNothingIsAskedInAHiddenNamespace(t *testing.T) {
	var reached []string
	proxy, client := startWith(t, apiproxy.NamespaceFilter{Hidden: []string{"a"}, Namespaced: func(_, _ string) (bool, error) { return true, nil }},
		func(_ http.ResponseWriter, req *http.Request) { reached = append(reached, req.Method+" "+req.URL.Path) })
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		send(t, client, method, proxy.URL()+"/apis/apps/v1/namespaces/a/deployments/x")
	}
	send(t, client, http.MethodPut, proxy.URL()+"/apis/apps/v1/namespaces/a/deployments/x/status")
	send(t, client, http.MethodPost, proxy.URL()+"/api/v1/namespaces/a/events")
	send(t, client, http.MethodPut, proxy.URL()+"/apis/apps/v1/namespaces/b/deployments/x")
	if want := []string{"PUT /apis/apps/v1/namespaces/b/deployments/x"}; !slices.Equal(reached, want) {
		t.Errorf("the API server is asked %q, want %q", reached, want)
	}
	for _, r := range proxy.Since(0)[:6] {
		if r.Status != http.StatusForbidden {
			t.Errorf("%s", r)
		}
	}
}

func TestANamespaceFilterThatCannotBeToldShowsNothing(t *testing.T) {
	filter := apiproxy.NamespaceFilter{Hidden: []string{"a"}, Namespaced: func(_, _ string) (bool, error) { return false, errors.New("timeout") }}
	arrived := false
	proxy, client := startWith(t, filter, func(http.ResponseWriter, *http.Request) { arrived = true })
	resp, err := get(t, client, proxy.URL()+"/apis/apps/v1/deployments")
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || arrived {
		t.Errorf("%v, %v, and the API server was asked: %v", resp, err, arrived)
	}
	if got := proxy.Since(0); len(got) != 1 || got[0].Refused() {
		t.Errorf("the client is blamed: %+v", got)
	}
}
