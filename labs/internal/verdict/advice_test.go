package verdict

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/trace"
)

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestAdviceNamesUnusedRights(t *testing.T) {
	used := []apiproxy.Tally{
		{Verb: "watch", Group: "apps", Resource: "deployments"},
		{Verb: "create", Group: "apps", Resource: "deployments"},
		{Verb: "update", Group: "cache.example.com", Resource: "memcacheds", Subresource: "status"},
		{Verb: "create", Group: "events.k8s.io", Resource: "events"},
	}
	for _, test := range []struct {
		name, want string
		rule       rbacv1.PolicyRule
	}{
		{"all in use", "", rule("apps", "deployments", "create")},
		{"reads go together", "", rule("apps", "deployments", "get", "list", "watch")},
		{"an event that is told again is patched", "", rule("events.k8s.io", "events", "create", "patch")},
		{"a subresource is one of its own", "", rule("cache.example.com", "memcacheds/status", "update")},
		{"admission asks for it", "", rule("cache.example.com", "memcacheds/finalizers", "update")},
		{"only a manager that elects needs it", "", rule("coordination.k8s.io", "leases", "get", "create", "update")},
		{"adopting may need it", "", rule("apps", "deployments", "delete")},
		{"a verb too many", "update on deployments.apps", rule("apps", "deployments", "create", "update")},
		{"of a subresource", "patch on memcacheds.cache.example.com/status", rule("cache.example.com", "memcacheds/status", "update", "patch")},
		{"a whole resource", "get, list, watch on pods", rule("", "pods", "get", "list", "watch")},
		{"the events of another group", "create, patch on events", rule("", "events", "create", "patch")},
	} {
		advice := strings.Join(adviseRights([]rbacv1.PolicyRule{test.rule}, used), "\n")
		if (advice == "") != (test.want == "") || !strings.Contains(advice, ": "+test.want+".") && test.want != "" {
			t.Errorf("%s: %q, want %q in it", test.name, advice, test.want)
		}
	}
}

func TestAdviceLetsApplyCreate(t *testing.T) {
	applies := []apiproxy.Tally{{Verb: "patch", Group: "apps", Resource: "deployments"}} // admission asks for create as well
	if got := adviseRights([]rbacv1.PolicyRule{rule("apps", "deployments", "create", "patch")}, applies); got != nil {
		t.Errorf("advice for an operator that applies: %q", got)
	}
}

func TestWritesThatChangedNothingAreCounted(t *testing.T) {
	write := func(resource, subresource string, times int) []apiproxy.Request {
		return slices.Repeat([]apiproxy.Request{{Resource: resource, Subresource: subresource}}, times)
	}
	if got := adviseWrites(write("deployments", "", toleratedWrites)); got != nil {
		t.Errorf("as few as can happen to anyone: %q", got)
	}
	got := adviseWrites(slices.Concat(write("deployments", "", 5), write("memcacheds", "status", 2), write("deployments", "", 1)))
	want := "8 writes of your operator changed nothing (2 of the status of memcacheds, 6 of deployments)."
	if len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q, want %q", got, want)
	}
}

const (
	onePass     = "11111111-2222-3333-4444-555555555555"
	anotherPass = "99999999-2222-3333-4444-555555555555"
)

func TestAdviceNoticesErrorsLoggedTwice(t *testing.T) {
	for _, test := range []struct {
		name, log string
		want      int
	}{
		{"the console form, with the pass", `2026-11-21T10:00:00Z	ERROR	unable to create	{"controller": "memcached", "reconcileID": "` + onePass + `", "error": "quota \"x\""}
2026-11-21T10:00:00Z	ERROR	Reconciler error	{"controller": "memcached", "reconcileID": "` + onePass + `", "error": "create Deployment: quota \"x\""}`, 1},
		{"as JSON", `{"level":"error","msg":"no luck","reconcileID":"` + onePass + `","error":"refused"}
{"level":"error","msg":"Reconciler error","reconcileID":"` + onePass + `","error":"refused"}`, 1},
		{"as slog's text", `level=ERROR msg="no luck" reconcileID=` + onePass + ` err="refused"
level=ERROR msg="Reconciler error" reconcileID=` + onePass + ` err="refused"`, 1},
		{"returned only", `{"level":"error","msg":"Reconciler error","reconcileID":"` + onePass + `","error":"refused"}`, 0},
		{"logged only", `{"level":"error","msg":"no luck","reconcileID":"` + onePass + `","error":"refused"}`, 0},
		{"another pass", `{"msg":"no luck","reconcileID":"` + anotherPass + `","error":"refused"}
{"msg":"Reconciler error","reconcileID":"` + onePass + `","error":"refused"}`, 0},
		{"another error", `{"msg":"no luck","reconcileID":"` + onePass + `","error":"something else"}
{"msg":"Reconciler error","reconcileID":"` + onePass + `","error":"refused"}`, 0},
		{"no form that we know", "error: refused\nReconciler error: refused", 0},
	} {
		if got := adviseErrors(strings.NewReader(test.log)); len(got) != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

func TestTimelineOfFirstFailure(t *testing.T) {
	available := trace.Action{Kind: "Pod", Verb: "started"}
	timelines := []*trace.Timeline{{Check: "a"}, {Check: "b", Actions: []trace.Action{available}}, {Check: "c"}, {Check: "earlier", Actions: []trace.Action{available}}}
	check := func(id string, lab int, s State) Check { return Check{ID: id, Lab: lab, State: s} }
	for _, test := range []struct {
		name, want string
		checks     []Check
	}{
		{"a failure", "c", []Check{check("a", 5, Passed), check("c", 5, Failed), check("b", 5, Failed)}},
		{"a failure without a Memcached", "", []Check{check("none", 5, Failed), check("a", 5, Passed)}},
		{"the fullest of the green ones", "b", []Check{check("a", 5, Passed), check("b", 5, Passed)}},
		{"the lab's own first", "b", []Check{check("earlier", 4, Passed), check("b", 5, Passed)}},
	} {
		got := ""
		if s := TimelineOf(&Result{Lab: 5, Checks: test.checks}, timelines); s != nil {
			got = s.Check
		}
		if got != test.want {
			t.Errorf("%s: the timeline of %q, want %q", test.name, got, test.want)
		}
	}
}
