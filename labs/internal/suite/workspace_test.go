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

func TestRolesHaveALimit(t *testing.T) {
	if _, err := parseRoles(strings.Repeat("kind: ClusterRole\n---\n", 21)); err == nil || !strings.Contains(err.Error(), "more than 20 roles") {
		t.Errorf("got %v", err)
	}
}

// Who judges rights combines groups, resources and verbs: 60 KB of them made 2 GB.
func TestRulesHaveALimit(t *testing.T) {
	if _, err := parseRoles("kind: ClusterRole\nrules:\n" + strings.Repeat("- {}\n", 201)); err == nil || !strings.Contains(err.Error(), "more than 200 rules") {
		t.Errorf("201 rules: %v", err)
	}
	long := "kind: ClusterRole\nrules: [{apiGroups: [apps], resources: [deployments], verbs: [" + strings.Repeat("g", 17<<10) + "]}]\n"
	if _, err := parseRoles(long); err == nil || !strings.Contains(err.Error(), "16 KiB") {
		t.Errorf("a verb of 17 KiB: %v", err)
	}
	for verbs, says := range map[int]string{190: "", 200: "more than 200"} {
		_, err := parseRoles("kind: ClusterRole\nrules: [{apiGroups: [apps], resources: [deployments], verbs: [" + strings.Repeat("get,", verbs) + "]}]\n")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%d verbs: %v", verbs, err)
		}
	}
}

func TestYAMLThatGrowsIsNotDecoded(t *testing.T) {
	for name, tc := range map[string]struct{ text, says string }{
		"what controller-gen writes": {"kind: ClusterRole\nrules: [{apiGroups: [apps]}]\n---\nkind: Role\nmetadata: {namespace: tea}\n", ""},
		"nothing":                    {"", ""},
		"an alias":                   {"a: &s text\nb: [*s, *s]\n", "line 1"},
		"a merged map":               {"kind: Role\n---\na: &s {b: c}\nd: {<<: *s}\n", "anchors and aliases"},
		"a deep value":               {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "lie in each other"},
		"an alias in a text that some take for a document": {"a: b\n---#: |\n  kind: &s ClusterRole\n  b: *s\n", "anchors and aliases"},
		"many roles": {strings.Repeat("kind: ClusterRole\n---\n", 20), ""},
		"no YAML":    {"a: b: c", "mapping values"},
	} {
		_, err := ReadYAML(tc.text)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", name, err)
		}
		if _, parsed := parseRoles(tc.text); (parsed == nil) != (tc.says == "") {
			t.Errorf("%s, as roles: %v", name, parsed)
		}
	}
}
