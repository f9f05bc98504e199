package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A role that has the name of one of Kubernetes', or is filled from others, must not get their rights.
func TestReadRolesTakesOnlyRules(t *testing.T) {
	workspace := t.TempDir()
	path := filepath.Join(workspace, RolePath)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`
kind: ClusterRole
metadata: {name: cluster-admin, labels: {a: b}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {kubernetes.io/bootstrapping: rbac-defaults}}]}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]
---
kind: Role
metadata: {name: admin, namespace: tea}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRoles(workspace)
	if err != nil {
		t.Fatal(err)
	}
	want := []*rbacv1.Role{
		{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tea"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadYAML(t *testing.T) {
	for text, want := range map[string]int{"kind: ClusterRole\n---\n---\nkind: Role\n": 2, "": 0, "a: b: c": -1} {
		if all, err := ReadYAML(text); (err != nil) != (want < 0) || err == nil && len(all) != want {
			t.Errorf("%q: %v, %v", text, all, err)
		}
	}
}
