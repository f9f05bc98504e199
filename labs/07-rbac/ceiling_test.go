package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestWithinCeiling(t *testing.T) {
	for name, tc := range map[string]struct {
		rule  rbacv1.PolicyRule
		cause string // "" is within
	}{
		"deployments":             {rule("apps", "deployments", "get", "list", "watch", "create", "update", "patch", "delete"), ""},
		"status":                  {rule("cache.example.com", "memcacheds/status", "patch"), ""},
		"events of the core":      {rule("", "events", "create", "patch"), ""},
		"token reviews":           {rule("authentication.k8s.io", "tokenreviews", "create"), ""},
		"reading events":          {rule("", "events", "list"), "too-much"},
		"deleting collections":    {rule("apps", "deployments", "deletecollection"), "too-much"},
		"deployments of the core": {rule("", "deployments", "get"), "too-much"},
		"writing pods":            {rule("", "pods", "create"), "too-much"},
		"secrets":                 {rule("", "secrets", "get"), "secrets"},
		"roles":                   {rule("rbac.authorization.k8s.io", "clusterroles", "get"), "escalates"},
		"every verb":              {rule("apps", "deployments", "*"), "wildcard"},
		"every resource":          {rule("apps", "*", "get"), "wildcard"},
		"every group":             {rule("*", "deployments", "get"), "wildcard"},
		"every subresource":       {rule("cache.example.com", "memcacheds/*", "get"), "wildcard"},
		"paths":                   {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, "too-much"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ceiling.allows([]rbacv1.PolicyRule{rule("", "pods", "get"), tc.rule})
			got := ""
			if err != nil {
				got = finding.Of(err).Cause
			}
			if got != tc.cause {
				t.Errorf("cause %q, want %q", got, tc.cause)
			}
		})
	}
}

// Rights in one namespace are none for a manager that looks at all of them.
func TestHoldsClusterRole(t *testing.T) {
	role := func(kind string) generate.Manifest {
		return generate.Manifest{Object: map[string]any{"kind": kind, "metadata": map[string]any{"namespace": "system"}}}
	}
	if err := holdsClusterRole([]generate.Manifest{role("Role"), role("ClusterRole")}); err != nil {
		t.Errorf("a ClusterRole beside a Role: %v", err)
	}
	err := holdsClusterRole([]generate.Manifest{role("Role")})
	if err == nil || finding.Of(err).Cause != "one-namespace" || finding.Of(err).Seen != "a Role in the namespace system" {
		t.Errorf("a Role alone: %v", err)
	}
}
