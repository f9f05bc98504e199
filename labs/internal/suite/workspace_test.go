package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A role that has the name of one of Kubernetes', or is filled from others, must not get their rights.
func TestARoleIsItsRules(t *testing.T) {
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
	want := []client.Object{
		&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tea"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What judges a role reads fields by their exact names. Whoever grants it must not take others for them.
func TestNothingHiddenIsGranted(t *testing.T) {
	const all = "rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n"
	for name, text := range map[string]string{
		"a kind in other letters":  "kind: List\nitems: []\n\"\u212Aind\": ClusterRole\n" + all,
		"rules in other letters":   "kind: ClusterRole\nrules: []\n\"rule\u017F\": " + strings.TrimPrefix(all, "rules: "),
		"a verb in other letters":  "kind: ClusterRole\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: [], \"verb\u017F\": ['*']}]\n",
		"a role for no namespace":  "kind: Role\n" + all,
		"a role for another's":     "kind: Role\nmetadata: {Namespace: kube-system}\n" + all,
		"a kind that is no string": "kind: [ClusterRole]\n" + all,
	} {
		roles, err := parseRoles(text)
		if err != nil {
			continue
		}
		for _, role := range roles {
			if role, ok := role.(*rbacv1.ClusterRole); !ok || len(role.Rules) > 0 && len(role.Rules[0].Verbs) > 0 {
				t.Errorf("%s: %+v", name, role)
			}
		}
	}
}

func TestReadYAML(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"what controller-gen writes": {"kind: ClusterRole\nrules: [{apiGroups: [apps]}]\n---\nkind: Role\nmetadata: {namespace: tea}\n", 2},
		"nothing":                    {"", 0},
		"an alias":                   {"kind: Role\nmetadata: &m {namespace: tea}\nother: *m\n", 1},
		"no YAML":                    {"a: b: c", -1},
	} {
		all, err := ReadYAML(tc.text)
		if (err != nil) != (tc.want < 0) || err == nil && len(all) != tc.want {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
