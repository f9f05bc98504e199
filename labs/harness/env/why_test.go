package env

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestWatchedNamespaces(t *testing.T) {
	request := func(verb, namespace string) apiproxy.Request {
		return apiproxy.Request{Verb: verb, Group: suite.Group, Resource: "memcacheds", Namespace: namespace}
	}
	elsewhere := apiproxy.Request{Verb: "list", Group: "apps", Resource: "deployments", Namespace: "c"}
	for name, tc := range map[string]struct {
		requests []apiproxy.Request
		want     []string
	}{
		"into nothing":   {[]apiproxy.Request{elsewhere, request("get", "a")}, nil},
		"everywhere":     {[]apiproxy.Request{request("list", ""), request("watch", ""), request("list", "a")}, nil},
		"into some":      {[]apiproxy.Request{request("list", "a"), request("watch", "a"), request("watch", "b")}, []string{"a", "b"}},
		"first into one": {[]apiproxy.Request{request("list", "a"), request("list", "")}, nil},
	} {
		if diff := cmp.Diff(tc.want, watchedNamespaces(tc.requests)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An API server that takes the second attempt has not refused anything, and a conflict is no refusal.
func TestRefusedLast(t *testing.T) {
	write := func(resource, subresource string, status int) apiproxy.Request {
		return apiproxy.Request{Verb: "update", Group: "apps", Resource: resource, Subresource: subresource, Status: status}
	}
	for name, tc := range map[string]struct {
		writes []apiproxy.Request
		want   int
	}{
		"none":                  {nil, 0},
		"taken":                 {[]apiproxy.Request{write("deployments", "", 200)}, 0},
		"refused":               {[]apiproxy.Request{write("deployments", "", 200), write("deployments", "", 422)}, 1},
		"refused, then taken":   {[]apiproxy.Request{write("deployments", "", 422), write("deployments", "", 200)}, 0},
		"conflict":              {[]apiproxy.Request{write("deployments", "", 409)}, 0},
		"no right":              {[]apiproxy.Request{write("deployments", "", 403)}, 0},
		"refused twice":         {[]apiproxy.Request{write("deployments", "", 422), write("deployments", "", 409), write("deployments", "", 422), write("deployments", "", 422)}, 2},
		"malformed":             {[]apiproxy.Request{write("deployments", "status", 400)}, 1},
		"refused another thing": {[]apiproxy.Request{write("deployments", "", 200), write("replicasets", "", 422)}, 0},
	} {
		if got := refusedLast(toResource(tc.writes, Deployments)); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// A manager goes on while its check fails, and may write something right by then.
func TestNotTaken(t *testing.T) {
	refused, taken := apiproxy.Request{Index: 1, Status: 422}, apiproxy.Request{Index: 2, Status: 200}
	for name, tc := range map[string]struct {
		writes   []apiproxy.Request
		rejected bool
		want     *apiproxy.Request
	}{
		"none":                                {nil, true, nil},
		"refused":                             {[]apiproxy.Request{taken, refused}, false, &refused},
		"refused, then taken":                 {[]apiproxy.Request{refused, taken}, false, nil},
		"refused until the wait ended":        {[]apiproxy.Request{refused, taken}, true, &refused},
		"nothing refused, whatever was ended": {[]apiproxy.Request{taken, taken}, true, nil},
	} {
		if diff := cmp.Diff(tc.want, notTaken(tc.writes, tc.rejected)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPanicInLogs(t *testing.T) {
	const want = "runtime error: invalid memory address or nil pointer dereference"
	for name, line := range map[string]string{
		"controller-runtime, development": `ERROR	Reconciler error	{"name": "tea", "error": "panic: ` + want + ` [recovered]"}`,
		"controller-runtime, production":  `{"level":"error","msg":"Reconciler error","name":"tea","error":"panic: ` + want + ` [recovered]"}`,
		"plain":                           "panic: " + want,
	} {
		if got := panicIn([]string{"all is well with tea", line}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := panicIn([]string{"don't panic, tea"}); got != "" {
		t.Errorf("a panic where there is none: %q", got)
	}
}
