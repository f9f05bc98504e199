package rbac

import (
	"fmt"
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
	for _, f := range most.excesses(rules) {
		return f
	}
	return nil
}

// excesses are findings about all rights that are beyond it.
func (most rights) excesses(rules []rbacv1.PolicyRule) (all []*finding.Finding) {
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			all = append(all, excess("too-much", "paths "+strings.Join(rule.NonResourceURLs, ", ")))
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if f := most.excess(group, resource, rule.Verbs); f != nil {
					all = append(all, f)
				}
			}
		}
	}
	return all
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
