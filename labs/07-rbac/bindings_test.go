package rbac

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

const (
	account       = "kind: ServiceAccount\nmetadata: {name: manager}\n"
	kustomization = "resources: [account.yaml, role.yaml, binding.yaml]\n"
)

func role(kind, name, group, resource string) string {
	return fmt.Sprintf("kind: %s\nmetadata: {name: %s}\nrules: [{apiGroups: ['%s'], resources: [%s], verbs: [get]}]\n", kind, name, group, resource)
}

func bind(kind, roleKind, name, subject string) string {
	return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: b}\nroleRef: {kind: %s, name: %s}\nsubjects: [%s]\n", kind, roleKind, name, subject)
}

const (
	toManager = "{kind: ServiceAccount, name: manager}"
	toUser    = "{kind: User, name: 'system:serviceaccount:system:manager'}"
	toPrefix  = "{kind: User, name: 'system:serviceaccount:shop-system:shop-manager'}"
	toDefault = "{kind: ServiceAccount, name: default}"
	toPeople  = "{kind: Group, name: admins}"
	toAll     = "{kind: Group, name: 'system:authenticated'}"
)

func readFiles(t *testing.T, files map[string]string) accounts {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifests, err := generate.ReadManifests(dir)
	if err != nil {
		t.Fatal(err)
	}
	return accountsOf(dir, manifests)
}

// Who binds a role gets the rules that are installed, whatever stands beside them.
func TestARoleThatIsNotInstalledGivesNothing(t *testing.T) {
	a := readFiles(t, map[string]string{
		"account.yaml": account, "kustomization.yaml": kustomization, "binding.yaml": bind("ClusterRoleBinding", "ClusterRole", "a", toManager),
		"decoy.yaml": role("ClusterRole", "a", "apps", "deployments"),
	})
	findingtest.Require(t, a.grantAtMost(ceiling), "binds-another", "binding.yaml binds ClusterRole a")
}

func TestAFolderIsNoManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "more.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := generate.ReadManifests(dir); err == nil { // kustomize would read what is in there
		t.Error("it is passed over")
	}
}

func TestWhatIsBoundToTheManager(t *testing.T) {
	for name, tc := range map[string]struct {
		role, binding string
		cause, seen   string
	}{
		"its own role":                         {role("ClusterRole", "a", "apps", "deployments"), bind("ClusterRoleBinding", "ClusterRole", "a", toManager), "", ""},
		"its own role in one namespace":        {role("Role", "a", "apps", "deployments"), bind("RoleBinding", "Role", "a", toManager), "", ""},
		"cluster-admin":                        {"", bind("ClusterRoleBinding", "ClusterRole", "cluster-admin", toManager), "binds-another", "binding.yaml binds ClusterRole cluster-admin"},
		"cluster-admin in a list":              {"", "kind: ClusterRoleBindingList\nitems: [{kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [" + toManager + "]}]\n", "binds-another", "binding.yaml binds ClusterRole cluster-admin"},
		"two roles of a name":                  {role("Role", "a", "", "secrets") + "---\n" + role("Role", "a", "", "configmaps"), bind("RoleBinding", "Role", "a", toManager), "bound-too-much", "secrets"},
		"cluster-admin, by its name as a user": {"", bind("ClusterRoleBinding", "ClusterRole", "cluster-admin", toUser), "binds-another", "ClusterRole cluster-admin"},
		"cluster-admin, by a name with prefix": {"", bind("ClusterRoleBinding", "ClusterRole", "cluster-admin", toPrefix), "binds-another", "ClusterRole cluster-admin"},
		"cluster-admin for people":             {"", bind("ClusterRoleBinding", "ClusterRole", "cluster-admin", toPeople), "", ""},
		"in one namespace, too":                {"", bind("RoleBinding", "ClusterRole", "admin", toManager), "binds-another", "ClusterRole admin"},
		"a role of another kind":               {role("Role", "a", "apps", "deployments"), bind("ClusterRoleBinding", "ClusterRole", "a", toManager), "binds-another", "ClusterRole a"},
		"a second role that is too big":        {role("ClusterRole", "a", "apps", "daemonsets"), bind("ClusterRoleBinding", "ClusterRole", "a", toManager), "bound-too-much", "in second.yaml: get on daemonsets"},
		"more, in one namespace":               {role("Role", "a", "", "configmaps"), bind("RoleBinding", "Role", "a", toManager), "", ""},
		"secrets behind it":                    {role("Role", "a", "", "configmaps, secrets"), bind("RoleBinding", "Role", "a", toManager), "bound-too-much", "secrets"},
		"a role of other roles":                {"kind: ClusterRole\nmetadata: {name: a}\naggregationRule: {}\n", bind("ClusterRoleBinding", "ClusterRole", "a", toManager), "binds-another", "ClusterRole a"},
		"everybody":                            {role("ClusterRole", "a", "apps", "deployments"), bind("ClusterRoleBinding", "ClusterRole", "a", toManager+", "+toAll), "binds-everybody", "system:authenticated"},
		"whoever is nobody":                    {role("ClusterRole", "a", "apps", "deployments"), bind("ClusterRoleBinding", "ClusterRole", "a", "{kind: User, name: 'system:anonymous'}"), "binds-everybody", "system:anonymous"},
		"who asks who somebody is":             {"", bind("ClusterRoleBinding", "ClusterRole", "'system:auth-delegator'", toManager), "", ""},
		"the account of whoever has none":      {"", bind("ClusterRoleBinding", "ClusterRole", "cluster-admin", toDefault), "binds-another", "ClusterRole cluster-admin"},
		"a role that everybody has":            {role("ClusterRole", "'system:basic-user'", "", "secrets"), "", "bound-too-much", "system:basic-user"},
		"Kubernetes' own role, made anew":      {role("ClusterRole", "cluster-admin", "apps", "deployments"), bind("ClusterRoleBinding", "ClusterRole", "cluster-admin", toManager), "bound-too-much", "cluster-admin"},
		"a role that nobody gets":              {role("ClusterRole", "a", "apps", "daemonsets"), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := readFiles(t, map[string]string{"account.yaml": account, "second.yaml": tc.role, "binding.yaml": tc.binding})
			findingtest.Require(t, a.grantAtMost(ceiling), tc.cause, tc.seen)
		})
	}
}

func TestTheRoleIsInstalled(t *testing.T) {
	generated, bound := role("ClusterRole", "manager-role", "apps", "deployments"), bind("ClusterRoleBinding", "ClusterRole", "manager-role", toManager)
	for name, tc := range map[string]struct {
		kustomization, binding string
		cause, seen            string
	}{
		"and bound":                      {kustomization, bound, "", ""},
		"and bound to people":            {kustomization, bind("ClusterRoleBinding", "ClusterRole", "manager-role", toPeople), "not-bound", "none"},
		"and another one bound":          {kustomization, bind("ClusterRoleBinding", "ClusterRole", "viewer", toManager), "not-bound", "none"},
		"and bound to no account":        {kustomization, bind("ClusterRoleBinding", "ClusterRole", "manager-role", toDefault), "not-bound", "none"},
		"and to the user of the account": {kustomization, bind("ClusterRoleBinding", "ClusterRole", "manager-role", toPrefix), "", ""},
		"and to one of another place":    {kustomization, bind("ClusterRoleBinding", "ClusterRole", "manager-role", "{kind: ServiceAccount, name: manager, namespace: default}"), "not-bound", "none"},
		"and to one of a longer name":    {kustomization, bind("ClusterRoleBinding", "ClusterRole", "manager-role", "{kind: ServiceAccount, name: shop-manager}"), "not-bound", "none"},
		"and nobody has the account":     {"resources: [role.yaml, binding.yaml]\n", bound, "not-bound", "none"},
		"and bound nowhere":              {"resources: [account.yaml, role.yaml]\n", bound, "not-bound", "none"},
		"and bound in one place":         {kustomization, bind("RoleBinding", "ClusterRole", "manager-role", toManager), "not-bound", "none"},
		"and bound as of old":            {kustomization, strings.Replace(bound, "io/v1", "io/v1beta1", 1), "not-bound", "none"},
		"and bound in this folder alone": {kustomization, strings.Replace(bound, "{name: b}", "{name: b, annotations: {config.kubernetes.io/local-config: 'true'}}", 1), "other", "local-config in binding.yaml"},
		"and called otherwise":           {kustomization + "nameSuffix: -a\n", bound, "other", "nameSuffix"},
		"and labelled":                   {kustomization + "labels: [{pairs: {a: b}}]\n", bound, "", ""},
		"and labelled in other fields":   {kustomization + "labels: [{pairs: {name: cluster-admin}, fields: [{path: roleRef}]}]\n", bound, "other", "fields"},
		"and patched":                    {kustomization + "patches: [{path: more.yaml}]\n", bound, "other", "patches"},
		"not by kustomize":               {"resources: [binding.yaml]\n", bound, "not-installed", "binding.yaml"},
		"in a way of one's own":          {"", bound, "", ""},
		"by its name in a path":          {"resources: [account.yaml, ./role.yaml, ./binding.yaml]\n", bound, "", ""},
		"and something else":             {"resources: [role.yaml, binding.yaml, more.txt]\n", bound, "other", "more.txt"},
		"and a file that is not there":   {"resources: [account.yaml, role.yaml, binding.yaml, more.yaml]\n", bound, "other", "more.yaml"},
		"and another folder":             {"resources: [role.yaml, binding.yaml, ../more.yaml]\n", bound, "other", "../more.yaml"},
		"by nothing and nowhere":         {"namePrefix: a\n", bound, "not-installed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
				files := map[string]string{"account.yaml": account, "role.yaml": generated, "binding.yaml": tc.binding}
				if tc.kustomization != "" {
					files[file] = tc.kustomization
				}
				a := readFiles(t, files)
				findingtest.Require(t, a.install(roleFile(a.manifests)), tc.cause, tc.seen)
			}
		})
	}
}

// Kustomize gives all names of a folder its prefix.
func TestAPrefixMakesNoRoleOfKubernetes(t *testing.T) {
	a := readFiles(t, map[string]string{
		"account.yaml": account, "role.yaml": role("ClusterRole", "min", "apps", "deployments"), "binding.yaml": bind("ClusterRoleBinding", "ClusterRole", "min", toManager),
		"kustomization.yaml": kustomization + "namePrefix: cluster-ad\n",
	})
	findingtest.Require(t, a.grantAtMost(ceiling), "bound-too-much", "min")
}

// Kustomize refuses such a folder, so nothing of it is installed.
func TestTwoKustomizationsAreNone(t *testing.T) {
	bound := bind("ClusterRoleBinding", "ClusterRole", "manager-role", toManager)
	files := map[string]string{"account.yaml": account, "role.yaml": role("ClusterRole", "manager-role", "apps", "deployments"), "binding.yaml": bound}
	files["kustomization.yaml"], files["Kustomization"] = kustomization, kustomization
	a := readFiles(t, files)
	findingtest.Require(t, a.install(roleFile(a.manifests)), "other", "kustomize takes one of them")
}
