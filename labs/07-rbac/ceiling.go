package rbac

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// ceiling is the most that the role may grant: verbs by group and resource. The lesson has it as a table.
var ceiling = map[string][]string{
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

// withinCeiling is a finding about the first right that no operator of this course needs, or nil.
func withinCeiling(rules []rbacv1.PolicyRule) error {
	if all := excesses(rules); len(all) > 0 {
		return all[0]
	}
	return nil
}

// excesses are findings about all rights that no operator of this course needs.
func excesses(rules []rbacv1.PolicyRule) (all []*finding.Finding) {
	for _, rule := range rules {
		if suite.TooLong(rule) {
			return append(all, excess("too-much", "a rule with hundreds of groups, resources or verbs"))
		}
		if len(rule.NonResourceURLs) > 0 {
			all = append(all, excess("too-much", "paths "+strings.Join(rule.NonResourceURLs, ", ")))
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if f := ruleWithinCeiling(group, resource, rule.Verbs); f != nil {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

func ruleWithinCeiling(group, resource string, verbs []string) *finding.Finding {
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
		if !slices.Contains(ceiling[group+"/"+resource], verb) {
			return excess("too-much", right)
		}
	}
	return nil
}

func excess(cause, right string) *finding.Finding {
	return finding.New(cause, "a role that grants nothing beyond the lesson's table", "%s", right)
}

func fromObject(object map[string]any, into any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("read role: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read role: %w", err)
	}
	return nil
}
