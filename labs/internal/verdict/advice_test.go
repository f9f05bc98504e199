package verdict

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/trace"
)

func TestAdviceNamesUnusedRights(t *testing.T) {
	used := []apiproxy.Tally{
		{Verb: "watch", Group: "apps", Resource: "deployments"},
		{Verb: "create", Group: "apps", Resource: "deployments"},
		{Verb: "patch", Group: "apps", Resource: "replicasets"},
		{Verb: "update", Group: "cache.example.com", Resource: "memcacheds", Subresource: "status"},
		{Verb: "create", Group: "events.k8s.io", Resource: "events"},
	}
	for _, tc := range []struct{ group, resource, verbs, want string }{
		{"apps", "deployments", "create", ""},
		{"apps", "deployments", "get list watch", ""},
		{"apps", "deployments", "delete", ""},
		{"apps", "replicasets", "create patch", ""},
		{"events.k8s.io", "events", "create patch", ""},
		{"cache.example.com", "memcacheds/status", "update", ""},
		{"cache.example.com", "memcacheds/finalizers", "update", ""},
		{"coordination.k8s.io", "leases", "get create update", ""},
		{"apps", "deployments", "create update", "update on deployments.apps"},
		{"cache.example.com", "memcacheds/status", "update patch", "patch on memcacheds.cache.example.com/status"},
		{"", "pods", "get list watch", "get, list, watch on pods"},
		{"", "events", "create patch", "create on events"},
	} {
		rule := rbacv1.PolicyRule{APIGroups: []string{tc.group}, Resources: []string{tc.resource}, Verbs: strings.Fields(tc.verbs)}
		advice := strings.Join(adviseRights([]rbacv1.PolicyRule{rule}, used), "\n")
		if (advice == "") != (tc.want == "") || !strings.Contains(advice, ": "+tc.want+".") && tc.want != "" {
			t.Errorf("%s on %s/%s: %q, want %q in it", tc.verbs, tc.group, tc.resource, advice, tc.want)
		}
	}
}

func TestTraceOfFirstFailure(t *testing.T) {
	actions := map[string][]trace.Action{"b": make([]trace.Action, 2), "c": make([]trace.Action, 1), "earlier": make([]trace.Action, 3)}
	check := func(id string, lab int, s State) Check { return Check{ID: id, Lab: lab, State: s} }
	for _, tc := range []struct {
		want   string
		checks []Check
	}{
		{"c", []Check{check("a", 5, Passed), check("c", 5, Failed), check("b", 5, Failed)}},
		{"none", []Check{check("none", 5, Failed), check("b", 5, Passed)}},
		{"b", []Check{check("earlier", 4, Passed), check("c", 5, Passed), check("b", 5, Passed)}},
	} {
		if got := CheckToTrace(&Result{Lab: 5, Checks: tc.checks}, actions); got != tc.want {
			t.Errorf("the trace of %q, want %q", got, tc.want)
		}
	}
}
