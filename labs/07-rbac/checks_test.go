package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func TestBeyond(t *testing.T) {
	for name, tc := range map[string]struct {
		rule  rbacv1.PolicyRule
		cause string // "" is within
	}{
		"deployments":             {allow("apps", everyVerb, "deployments"), ""},
		"reading events":          {allow("", []string{"list"}, "events"), "too-much"},
		"deployments of the core": {allow("", []string{"get"}, "deployments"), "too-much"},
		"services":                {allow("", []string{"get"}, "services"), "too-much"},
		"secrets":                 {allow("", []string{"get"}, "services", "secrets"), "secrets"},
		"every verb":              {allow("apps", []string{"*"}, "deployments"), "wildcard"},
		"every subresource":       {allow("cache.example.com", []string{"get"}, "memcacheds/*"), "wildcard"},
		"paths":                   {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, "too-much"},
	} {
		t.Run(name, func(t *testing.T) {
			err := beyond(ceiling(func(string) bool { return false }), []rbacv1.PolicyRule{allow("", []string{"get"}, "pods"), tc.rule})
			findingtest.Require(t, err, tc.cause, "")
		})
	}
}

func TestMisnamed(t *testing.T) {
	r := apiproxy.Request{Verb: "list", Group: "apps", Resource: "deployments"}
	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want bool
	}{
		"a version":      {allow("apps/v1", []string{"list"}, "deployments"), true},
		"a kind":         {allow("apps", []string{"list"}, "Deployment"), true},
		"verbs with ;":   {allow("apps", []string{"get;list"}, "deployments"), true},
		"another verb":   {allow("apps", []string{"get"}, "deployments"), false},
		"something else": {allow("apps", []string{"list"}, "daemonsets"), false},
	} {
		if got := misnamed([]rbacv1.PolicyRule{tc.rule}, r); (got != "") != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
