package rbac

import (
	"runtime"
	"slices"
	"strings"
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

// A rule that combines hundreds of words is one finding, and not as many as there are combinations.
func TestAHugeRuleIsOneFinding(t *testing.T) {
	huge := rbacv1.PolicyRule{Verbs: make([]string, 100), APIGroups: make([]string, 100), Resources: make([]string, 100)}
	if all := slices.Collect(ceiling.excesses([]rbacv1.PolicyRule{huge, huge})); len(all) != 1 {
		t.Errorf("%d findings", len(all))
	}
}

// A rule below the limit of words may combine long ones to findings of a gigabyte. Only the first is of interest.
func TestLongWordsTakeNoMemory(t *testing.T) {
	letters := func(n int) (all []string) {
		for i := range n {
			all = append(all, strings.Repeat("x", i+1))
		}
		return all
	}
	rule := rbacv1.PolicyRule{Verbs: []string{strings.Repeat("v", 100_000)}, APIGroups: letters(99), Resources: letters(99)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := ceiling.allows([]rbacv1.PolicyRule{rule})
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; err == nil || taken > 16<<20 {
		t.Errorf("%d MiB, and %v", taken>>20, err)
	}
}
