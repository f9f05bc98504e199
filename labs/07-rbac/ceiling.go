package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

func allow(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// ceiling is the most that the role may grant, for the operator of a definition. The lesson has it as a table.
func ceiling(memcacheds *crd.Resource) []rbacv1.PolicyRule {
	most := []rbacv1.PolicyRule{
		allow(suite.Group, everyVerb, "memcacheds", "memcacheds/status", "memcacheds/finalizers"),
		allow("apps", everyVerb, "deployments"),
		allow("coordination.k8s.io", everyVerb, "leases"),
		allow("", []string{"create", "patch", "update"}, "events"),
		allow("events.k8s.io", []string{"create", "patch", "update"}, "events"),
		allow("", []string{"get", "list", "watch"}, "pods"),
		allow("authentication.k8s.io", []string{"create"}, "tokenreviews"),
		allow("authorization.k8s.io", []string{"create"}, "subjectaccessreviews"),
	}
	if memcacheds.Property("spec", "optionsFrom") != nil { // the operator of a later lab
		most = append(most, allow("", everyVerb, "services"), allow("", []string{"get", "list", "watch"}, "configmaps"))
	}
	return most
}

// excess is a finding about the worst of the rules that is beyond the ceiling, nil if there is none.
func excess(most, rules []rbacv1.PolicyRule) *finding.Finding {
	_, beyond := validation.Covers(most, rules)
	var worst *finding.Finding
	for _, rule := range beyond {
		right := fmt.Sprintf("%s on %s in the group %q", strings.Join(rule.Verbs, ", "), strings.Join(rule.Resources, ", "), strings.Join(rule.APIGroups, ", "))
		cause := "too-much"
		switch {
		case len(rule.NonResourceURLs) > 0:
			right = "paths " + strings.Join(rule.NonResourceURLs, ", ")
		case strings.Contains(right, "*"):
			cause = "wildcard"
		case slices.Contains(rule.Resources, "secrets"):
			cause = "secrets"
		case slices.Contains(rule.APIGroups, rbacv1.GroupName):
			cause = "escalates"
		}
		if worst == nil || worst.Cause == "too-much" && cause != "too-much" {
			worst = finding.New(cause, "a role that grants nothing beyond the lesson's table", "%s", right)
		}
	}
	return worst
}
