package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/recorder"
)

func TestLooksInto(t *testing.T) {
	look := func(verb, namespace string) recorder.Request {
		return recorder.Request{Verb: verb, Group: Group, Resource: "memcacheds", Namespace: namespace}
	}
	elsewhere := recorder.Request{Verb: "list", Group: "apps", Resource: "deployments", Namespace: "c"}
	for name, tc := range map[string]struct {
		requests []recorder.Request
		want     []string
	}{
		"into nothing":   {[]recorder.Request{elsewhere, look("get", "a")}, nil},
		"everywhere":     {[]recorder.Request{look("list", ""), look("watch", ""), look("list", "a")}, nil},
		"into some":      {[]recorder.Request{look("list", "a"), look("watch", "a"), look("watch", "b")}, []string{"a", "b"}},
		"first into one": {[]recorder.Request{look("list", "a"), look("list", "")}, nil},
	} {
		if diff := cmp.Diff(tc.want, looksInto(tc.requests)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An API server that takes the second attempt has not refused anything, and a conflict is no refusal.
func TestOnlyTheLastWritesCount(t *testing.T) {
	write := func(resource, subresource string, status int) recorder.Request {
		return recorder.Request{Verb: "update", Group: deployments.Group, Resource: resource, Subresource: subresource, Status: status}
	}
	for name, tc := range map[string]struct {
		writes []recorder.Request
		want   int
	}{
		"none":                  {nil, 0},
		"taken":                 {[]recorder.Request{write("deployments", "", 200)}, 0},
		"refused":               {[]recorder.Request{write("deployments", "", 200), write("deployments", "", 422)}, 1},
		"refused, then taken":   {[]recorder.Request{write("deployments", "", 422), write("deployments", "", 200)}, 0},
		"conflict":              {[]recorder.Request{write("deployments", "", 409)}, 0},
		"no right":              {[]recorder.Request{write("deployments", "", 403)}, 0},
		"refused twice":         {[]recorder.Request{write("deployments", "", 422), write("deployments", "", 409), write("deployments", "", 422), write("deployments", "", 422)}, 2},
		"malformed":             {[]recorder.Request{write("deployments", "status", 400)}, 1},
		"refused another thing": {[]recorder.Request{write("deployments", "", 200), write("replicasets", "", 422)}, 0},
	} {
		if got := refusedLast(ofKind(tc.writes, deployments)); got != tc.want {
			t.Errorf("%s: %d", name, got)
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
