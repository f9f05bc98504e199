package rbac

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// rights are verbs by group and resource.
type rights map[string][]string

// ceiling is the most that the role may grant. The lesson has it as a table.
var ceiling = rights{
	suite.Group + "/memcacheds":                 everyVerb,
	suite.Group + "/memcacheds/status":          everyVerb,
	suite.Group + "/memcacheds/finalizers":      everyVerb,
	"apps/deployments":                          everyVerb,
	"coordination.k8s.io/leases":                everyVerb,
	"/events":                                   {"create", "patch", "update"},
	"events.k8s.io/events":                      {"create", "patch", "update"},
	"/pods":                                     {"get", "list", "watch"},
	"authentication.k8s.io/tokenreviews":        {"create"},
	"authorization.k8s.io/subjectaccessreviews": {"create"},
}

// relationsCeiling is what an operator may have beyond [ceiling] that has come as far as lab 9.
var relationsCeiling = rights{
	"/services":   everyVerb,
	"/configmaps": {"get", "list", "watch"},
}

// ceilingOf is the ceiling for the operator of a definition: that of lab 9 has spec.optionsFrom.
func ceilingOf(resource *crd.Resource) rights {
	most := maps.Clone(ceiling)
	if resource.Property("spec", "optionsFrom") != nil {
		maps.Copy(most, relationsCeiling)
	}
	return most
}

// allows is a finding about the first right that is beyond it, or nil.
func (most rights) allows(rules []rbacv1.PolicyRule) error {
	for f := range most.excesses(rules) {
		return f
	}
	return nil
}

// excesses are findings about all rights that are beyond it, one after the other: together they may not fit into memory.
func (most rights) excesses(rules []rbacv1.PolicyRule) iter.Seq[*finding.Finding] {
	return func(yield func(*finding.Finding) bool) {
		for _, rule := range rules {
			if suite.TooLong(rule) {
				yield(excess(finding.CauseOther, "a rule with hundreds of groups, resources or verbs")) // what follows is not read
				return
			}
			if len(rule.NonResourceURLs) > 0 && !yield(excess("too-much", "paths "+strings.Join(rule.NonResourceURLs, ", "))) {
				return
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if f := most.excess(group, resource, rule.Verbs); f != nil && !yield(f) {
						return
					}
				}
			}
		}
	}
}

func (most rights) excess(group, resource string, verbs []string) *finding.Finding {
	right := fmt.Sprintf("%s on %s in the group %q", strings.Join(verbs, ", "), resource, group)
	switch {
	case group == "*" || strings.Contains(resource, "*") || slices.Contains(verbs, "*"):
		return excess("wildcard", right)
	case group == "" && resource == "secrets":
		return excess("secrets", right)
	case group == rbacv1.GroupName:
		return excess("escalates", right)
	}
	for _, verb := range verbs {
		if !slices.Contains(most[group+"/"+resource], verb) {
			return excess("too-much", right)
		}
	}
	return nil
}

func excess(cause, right string) *finding.Finding {
	return finding.New(cause, "a role that grants nothing beyond the lesson's table", "%s", right)
}
