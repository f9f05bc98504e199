package verdict

import (
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

// addTraceAndAdvice adds what a reader may want to know beside the verdicts: who did what in one check, and after a pass what
// is right and could be better. Both come from what was written down during the run; where that is missing, so are they.
func (r *run) addTraceAndAdvice(results []*Result) {
	recording, err := trace.ReadFile(filepath.Join(r.artifacts, trace.File))
	if err != nil {
		return // no lab of the run has a manager, or the suite was cut short
	}
	actions := recording.ByCheck()
	for _, result := range results {
		result.Trace = trace.Line(actions[CheckToTrace(result, actions)], result.First() != nil)
	}
	last := results[len(results)-1]
	if rules, err := suite.RoleRules(r.Workspace); err == nil && last.Verdict == Pass && r.Course.UnderRole(last.Lab) {
		last.Advice = adviseRights(rules, recording.Tallies)
	}
}

// CheckToTrace is the id of the check whose actions explain a result: the first that failed, or, when all hold, the one of the lab in
// which the most happened.
func CheckToTrace(r *Result, actions map[string][]trace.Action) (id string) {
	if failed := r.First(); failed != nil {
		return failed.ID
	}
	for _, c := range r.Checks {
		if c.Lab == r.Lab && len(actions[c.ID]) > len(actions[id]) {
			id = c.ID
		}
	}
	return id
}

// unseen are rights that no request of a run need show: admission asks for some of them elsewhere, an event is patched only when it
// is told again, and the run keeps the manager from leader election and from guarding its metrics.
var unseen = []string{"memcacheds/finalizers", "leases", "tokenreviews", "subjectaccessreviews", "patch events", "delete deployments"}

// adviseRights names the rights that were granted and never used.
func adviseRights(rules []rbacv1.PolicyRule, tallies []apiproxy.Tally) []string {
	used := map[string]bool{}
	note := func(verb, group, resource string) string { // a cache lists and watches, and a get beside them gives nothing more away
		if slices.Contains([]string{"get", "list", "watch"}, verb) {
			verb = "read"
		}
		return verb + " " + group + "/" + resource
	}
	for _, t := range tallies {
		resource := strings.TrimSuffix(t.Resource+"/"+t.Subresource, "/")
		used[note(t.Verb, t.Group, resource)] = true
		if t.Verb == "patch" { // an apply that creates is a patch, and needs both
			used[note("create", t.Group, resource)] = true
		}
	}
	var unused []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
					return used[note(verb, group, resource)] || slices.Contains(unseen, resource) || slices.Contains(unseen, verb+" "+resource)
				})
				if len(verbs) > 0 {
					base, sub, _ := strings.Cut(resource, "/")
					unused = append(unused, strings.Join(verbs, ", ")+" on "+strings.Trim(strings.Trim(base+"."+group, ".")+"/"+sub, "/"))
				}
			}
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return []string{"Your role grants what no request of labs 4 to 7 needed: " + strings.Join(unused, "; ") +
		". What is not granted cannot be misused: try without."}
}
