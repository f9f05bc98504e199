package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func TestExcess(t *testing.T) {
	for name, tc := range map[string]struct {
		rule  rbacv1.PolicyRule
		cause string // "" is within
	}{
		"deployments":             {allow("apps", everyVerb, "deployments"), ""},
		"one name":                {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}, ResourceNames: []string{"a"}}, ""},
		"reading events":          {allow("", []string{"list"}, "events"), "too-much"},
		"deleting collections":    {allow("apps", []string{"deletecollection"}, "deployments"), "too-much"},
		"deployments of the core": {allow("", []string{"get"}, "deployments"), "too-much"},
		"services":                {allow("", []string{"get"}, "services"), "too-much"},
		"secrets":                 {allow("", []string{"get"}, "services", "secrets"), "secrets"},
		"roles":                   {allow("rbac.authorization.k8s.io", []string{"get"}, "clusterroles"), "escalates"},
		"every verb":              {allow("apps", []string{"*"}, "deployments"), "wildcard"},
		"every subresource":       {allow("cache.example.com", []string{"get"}, "memcacheds/*"), "wildcard"},
		"paths":                   {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, "too-much"},
	} {
		t.Run(name, func(t *testing.T) {
			cause := ""
			if f := excess(ceiling(&crd.Resource{}), []rbacv1.PolicyRule{allow("", []string{"get"}, "pods"), tc.rule}); f != nil {
				cause = f.Cause
			}
			if cause != tc.cause {
				t.Errorf("cause %q, want %q", cause, tc.cause)
			}
		})
	}
}

// Rights in one namespace are none for a manager that looks at all of them.
func TestHoldsClusterRole(t *testing.T) {
	role := func(kind string) generate.Manifest {
		return generate.Manifest{Object: map[string]any{"kind": kind, "metadata": map[string]any{"namespace": "system"}}}
	}
	findingtest.Require(t, holdsClusterRole([]generate.Manifest{role("Role"), role("ClusterRole")}), "", "")
	findingtest.Require(t, holdsClusterRole([]generate.Manifest{role("Role")}), "one-namespace", "a Role in the namespace system")
}

func TestBuildGivesPrefixAndNamespace(t *testing.T) {
	const account, people = "kind: ServiceAccount\napiVersion: v1\nmetadata: {name: manager, namespace: system}\n", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"
	workspace, scratch := t.TempDir(), t.TempDir()
	coursetest.Write(t, workspace, "config/rbac/account.yaml", account+"---\n"+people)
	if built, err := build(workspace, scratch, "ns", "a-"); built != nil || err != nil {
		t.Errorf("build without a kustomization = %v, %v", built, err)
	}
	coursetest.Write(t, workspace, "config/rbac/kustomization.yaml", "resources: [account.yaml]\n")
	built, err := build(workspace, scratch, "ns", "a-")
	if err != nil || len(built.objects) != 1 || built.find("ServiceAccount", "a-manager") == nil || built.objects[0].GetNamespace() != "ns" {
		t.Errorf("build = %v, %v", built, err)
	}
	coursetest.Write(t, workspace, "config/rbac/kustomization.yaml", "resources: [missing.yaml]\n")
	_, err = build(workspace, scratch, "ns", "a-")
	findingtest.Require(t, err, "other", "missing.yaml")
}
