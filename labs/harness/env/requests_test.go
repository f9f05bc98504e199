package env

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// An answer has the object's version after the write: a write that changes nothing gets the same one again.
func TestRewritten(t *testing.T) {
	write := func(resource, name, version string) apiproxy.Request {
		return apiproxy.Request{Verb: "update", Resource: resource, Namespace: "n", Name: name, Object: name, ResourceVersion: version, Status: http.StatusOK}
	}
	created := apiproxy.Request{Verb: "create", Resource: "configmaps", Namespace: "n", Object: "notes", ResourceVersion: "1", Status: http.StatusCreated}
	refused := write("configmaps", "notes", "")
	refused.Status, refused.Object = http.StatusForbidden, ""
	for name, tc := range map[string]struct {
		requests []apiproxy.Request
		want     string
	}{
		"created, and written once":  {[]apiproxy.Request{created, write("configmaps", "notes", "2")}, "configmaps notes"},
		"written twice":              {[]apiproxy.Request{write("configmaps", "notes", "2"), write("configmaps", "notes", "3")}, "configmaps notes"},
		"the same":                   {[]apiproxy.Request{created, write("configmaps", "notes", "1")}, ""},
		"two objects":                {[]apiproxy.Request{created, write("secrets", "notes", "2"), write("configmaps", "more", "3")}, ""},
		"an answer without object":   {[]apiproxy.Request{created, write("configmaps", "", "")}, ""},
		"deleted, twice":             {[]apiproxy.Request{{Verb: "delete", Resource: "configmaps", Namespace: "n", Name: "a", Status: 200}, {Verb: "delete", Resource: "configmaps", Namespace: "n", Name: "b", Status: 200}}, ""},
		"refused":                    {[]apiproxy.Request{created, refused, refused}, ""},
		"what has its name":          {[]apiproxy.Request{write("deployments", "tea", "1"), write("deployments", "tea", "2")}, ""},
		"an event that is repeated":  {[]apiproxy.Request{write("events", "tea.1", "1"), write("events", "tea.1", "2")}, ""},
		"the lease of the leader":    {[]apiproxy.Request{write("leases", "lock", "1"), write("leases", "lock", "2")}, ""},
		"between two other requests": {[]apiproxy.Request{created, write("configmaps", "more", "7"), write("configmaps", "notes", "9")}, "configmaps notes"},
	} {
		if got := rewritten(tc.requests, types.NamespacedName{Namespace: "n", Name: "tea"}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := rewritten([]apiproxy.Request{created, write("configmaps", "notes", "2")}, types.NamespacedName{Namespace: "elsewhere", Name: "tea"}); got != "" {
		t.Errorf("of another namespace: %q", got)
	}
}
