package recorder_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/recorder"
)

func TestAViewNarrowsWhatIsSelectedAndNothingElse(t *testing.T) {
	except := recorder.View{Except: []string{"a", "b"}}
	only := recorder.View{Only: "a"}
	for _, tc := range []struct {
		view         recorder.View
		method, path string
		want         string
	}{
		{except, http.MethodGet, "/apis/apps/v1/deployments", "metadata.namespace!=a,metadata.namespace!=b"},
		{except, http.MethodGet, "/apis/apps/v1/deployments?watch=true", "metadata.namespace!=a,metadata.namespace!=b"},
		{only, http.MethodGet, "/apis/apps/v1/deployments", "metadata.namespace=a"},
		{only, http.MethodGet, "/apis/apps/v1/namespaces/b/deployments", "metadata.namespace=a"},
		{only, http.MethodDelete, "/apis/apps/v1/namespaces/b/deployments", "metadata.namespace=a"},
		{only, http.MethodGet, "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dd", "metadata.name=d,metadata.namespace=a"},
		{only, http.MethodGet, "/apis/apps/v1/namespaces/b/deployments/d", ""},
		{only, http.MethodPost, "/apis/apps/v1/namespaces/b/deployments", ""},
		{only, http.MethodGet, "/api/v1/nodes", ""},
		{only, http.MethodGet, "/version", ""},
		{recorder.View{}, http.MethodGet, "/apis/apps/v1/deployments", ""},
	} {
		var arrived []string
		tc.view.Namespaced = func(_, resource string) bool { return resource != "nodes" }
		rec, client := startWith(t, nil, tc.view, func(_ http.ResponseWriter, r *http.Request) {
			arrived = append(arrived, r.URL.Query()["fieldSelector"]...)
		})
		send(t, client, tc.method, rec.URL()+tc.path)
		var want []string
		if tc.want != "" {
			want = []string{tc.want}
		}
		if diff := cmp.Diff(want, arrived); diff != "" {
			t.Errorf("%s %s: %s", tc.method, tc.path, diff)
		}
	}
}
