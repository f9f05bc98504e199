package harness

import (
	"testing"

	"github.com/example/operator-lab/labs/harness/recorder"
)

// An API server that takes the second attempt has not refused anything, and a conflict is no refusal.
func TestOnlyTheLastWriteCounts(t *testing.T) {
	kind := recorder.Request{Group: "apps", Resource: "deployments"}
	write := func(resource, subresource string, status int) recorder.Request {
		return recorder.Request{Verb: "update", Group: kind.Group, Resource: resource, Subresource: subresource, Status: status}
	}
	for name, tc := range map[string]struct {
		writes []recorder.Request
		want   bool
	}{
		"none":                  {nil, false},
		"taken":                 {[]recorder.Request{write("deployments", "", 200)}, false},
		"refused":               {[]recorder.Request{write("deployments", "", 200), write("deployments", "", 422)}, true},
		"refused, then taken":   {[]recorder.Request{write("deployments", "", 422), write("deployments", "", 200)}, false},
		"conflict":              {[]recorder.Request{write("deployments", "", 409)}, false},
		"no right":              {[]recorder.Request{write("deployments", "", 403)}, false},
		"malformed":             {[]recorder.Request{write("deployments", "status", 400)}, true},
		"refused another thing": {[]recorder.Request{write("deployments", "", 200), write("replicasets", "", 422)}, false},
	} {
		if got := invalid(lastOf(tc.writes, kind)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestPanicsAreFoundInLogsOfAnyFormat(t *testing.T) {
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
