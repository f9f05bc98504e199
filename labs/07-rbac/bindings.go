package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// delegator is a role of Kubernetes that grants two rights below the ceiling: those to ask who somebody is and what they may.
const delegator = "ClusterRole system:auth-delegator"

// accounts are the rights that a folder with manifests gives to the ServiceAccounts in it.
type accounts struct {
	dir       string
	manifests []generate.Manifest
	// kustomization says which files are installed; nil where the workspace installs them in its own way.
	kustomization *generate.Manifest
	listed        []string                       // the files that it installs
	roles         map[string][]generate.Manifest // those that are installed, by kind and name, of all namespaces
	own           []generate.Manifest            // the ServiceAccounts
}

func accountsOf(dir string, manifests []generate.Manifest) accounts {
	a := accounts{dir: dir, manifests: manifests, roles: map[string][]generate.Manifest{}}
	if i := slices.IndexFunc(manifests, isKustomization); i >= 0 {
		a.kustomization = &manifests[i]
		a.listed, _, _ = unstructured.NestedStringSlice(a.kustomization.Object, "resources")
	}
	for _, m := range manifests {
		switch kind := m.Kind(); kind {
		case "Role", "ClusterRole":
			if m.File == path.Base(suite.RolePath) || a.installs(m.File) {
				a.roles[kind+" "+m.Name()] = append(a.roles[kind+" "+m.Name()], m)
			}
		case "ServiceAccount":
			a.own = append(a.own, m)
		}
	}
	return a
}

func isKustomization(m generate.Manifest) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", generate.Kustomization}, m.File)
}

// installs says whether the objects of a file come into a cluster.
func (a accounts) installs(file string) bool {
	return a.kustomization == nil || slices.ContainsFunc(a.listed, func(name string) bool { return path.Clean(name) == file })
}

// isKubernetes says whether an object is a role that each cluster has, also with the prefix that kustomize gives it: some are bound to
// everybody, and the API server gives them back what somebody takes from them
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings).
func (a accounts) isKubernetes(m generate.Manifest) bool {
	prefix := ""
	if a.kustomization != nil {
		prefix, _ = a.kustomization.Object["namePrefix"].(string)
	}
	return m.Kind() == "ClusterRole" && slices.ContainsFunc([]string{m.Name(), prefix + m.Name()}, func(name string) bool {
		return strings.HasPrefix(name, "system:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name)
	})
}

// bindings are those that give something to one of the ServiceAccounts, to whoever has none, or to everybody.
func (a accounts) bindings() (all []binding, _ error) {
	for _, m := range a.manifests {
		if kind := m.Kind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		b := binding{file: m.File}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &b.ClusterRoleBinding); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.File, err)
		}
		if b.everybody() != "" || slices.ContainsFunc(b.Subjects, a.isOurs) || slices.ContainsFunc(b.Subjects, isDefault) {
			all = append(all, b)
		}
	}
	return all, nil
}

// isOurs knows an account by its name, and by one with a prefix, which config/default gives it.
func (a accounts) isOurs(s rbacv1.Subject) bool {
	name := accountName(s)
	return name != "" && slices.ContainsFunc(a.own, func(account generate.Manifest) bool { return strings.HasSuffix(name, account.Name()) })
}

// isInstalled says whether a subject is one of the accounts, as kustomize knows it: by name and namespace, and in a file that it
// installs. Who stands there as a user has the names of the cluster.
func (a accounts) isInstalled(s rbacv1.Subject) bool {
	if s.Kind == rbacv1.UserKind {
		return a.isOurs(s)
	}
	return slices.ContainsFunc(a.own, func(account generate.Manifest) bool {
		namespace, _, _ := unstructured.NestedString(account.Object, "metadata", "namespace")
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == account.Name() && s.Namespace == namespace && a.installs(account.File)
	})
}

// isDefault says whether a subject is the account of whoever has none of their own.
func isDefault(s rbacv1.Subject) bool { return accountName(s) == "default" }

// accountName is the name of a ServiceAccount, also where it stands as that of a user, system:serviceaccount:<namespace>:<name>; "" for
// others.
func accountName(s rbacv1.Subject) string {
	switch {
	case s.Kind == rbacv1.ServiceAccountKind:
		return s.Name
	case s.Kind == rbacv1.UserKind && strings.HasPrefix(s.Name, "system:serviceaccount:"):
		return s.Name[strings.LastIndex(s.Name, ":")+1:]
	}
	return ""
}

// binding is a RoleBinding or a ClusterRoleBinding, which have the same fields.
type binding struct {
	rbacv1.ClusterRoleBinding
	file string
}

// role is the kind and the name of what is bound.
func (b binding) role() string { return b.RoleRef.Kind + " " + b.RoleRef.Name }

// everybody is a subject that stands for all users, all accounts or whoever is neither, "" without one.
func (b binding) everybody() string {
	for _, s := range b.Subjects {
		if s.Kind == rbacv1.GroupKind && strings.HasPrefix(s.Name, "system:") || s.Kind == rbacv1.UserKind && s.Name == "system:anonymous" {
			return s.Name
		}
	}
	return ""
}

// grantAtMost wants the accounts to have no more rights than the ceiling, by whatever binding: one to cluster-admin grants
// everything, whatever stands in the generated role. A Role is for the manager's own namespace, as the one for leader
// election, and may grant more, but none of what the lesson forbids.
func (a accounts) grantAtMost(most rights) error {
	if i := slices.IndexFunc(a.manifests, a.isKubernetes); i >= 0 {
		role := a.manifests[i]
		return finding.New("bound-too-much", "roles with names that Kubernetes does not use itself", "in %s: %s %s", role.File, role.Kind(), role.Name())
	}
	bindings, err := a.bindings()
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if group := b.everybody(); group != "" {
			return finding.New("binds-everybody", "bindings for the manager's ServiceAccount alone", "%s binds the group %s", b.file, group)
		}
		roles := a.roles[b.role()]
		switch {
		case b.role() == delegator:
			continue
		case len(roles) == 0 || slices.ContainsFunc(roles, func(m generate.Manifest) bool { return m.Object["aggregationRule"] != nil }):
			return finding.New("binds-another", "bindings for the manager to the roles in config/rbac, and to no others", "%s binds %s", b.file, b.role())
		}
		for _, role := range roles {
			for _, f := range most.excesses(rules([]generate.Manifest{role})) {
				if role.File == path.Base(suite.RolePath) || b.RoleRef.Kind == "Role" && f.Cause == "too-much" {
					continue // the generated role is judged by itself
				}
				return finding.New("bound-too-much", f.Expected, "in %s: %s", role.File, f.Seen)
			}
		}
	}
	return nil
}

// install wants kustomize to install the generated role, and a binding of it. A workspace without a kustomization installs
// its files in its own way.
func (a accounts) install(generated []generate.Manifest) error {
	if a.kustomization == nil {
		return nil
	}
	role := path.Base(suite.RolePath)
	if !a.installs(role) {
		return finding.New("not-installed", fmt.Sprintf("%s among the resources of %s", role, a.kustomization.File), "%s", strings.Join(a.listed, ", "))
	}
	if other := slices.IndexFunc(a.listed, elsewhere); other >= 0 {
		return finding.New(finding.CauseOther, "YAML files of config/rbac as the resources of "+a.kustomization.File, "%s", a.listed[other])
	}
	for _, name := range a.listed {
		if _, err := os.Stat(filepath.Join(a.dir, name)); err != nil { // who has the file gets more than is read here
			return finding.New(finding.CauseOther, "the files that "+a.kustomization.File+" lists", "there is no %s", name)
		}
	}
	if seen := a.changes(); seen != "" {
		return finding.New(finding.CauseOther, "manifests in config/rbac that are installed as they are: this check reads nothing else", "%s", seen)
	}
	bindings, err := a.bindings()
	if err != nil {
		return err
	}
	for _, b := range bindings {
		isGenerated := func(m generate.Manifest) bool { return m.Kind()+" "+m.Name() == b.role() }
		isRead := b.Kind == "ClusterRoleBinding" && b.APIVersion == rbacv1.SchemeGroupVersion.String() && a.installs(b.file)
		if isRead && slices.ContainsFunc(b.Subjects, a.isInstalled) && slices.ContainsFunc(generated, isGenerated) {
			return nil
		}
	}
	return finding.New("not-bound", "a ClusterRoleBinding of the role in "+role+" to the ServiceAccount of the manager, in a file that is installed", "none in config/rbac")
}

// kustomizationFields are those with which kustomize installs what stands in the files, and labelFields those of its labels. With others,
// such as patches, it may install something else.
var (
	kustomizationFields = []string{"apiVersion", "kind", "metadata", "resources", "labels", "commonLabels", "namespace", "namePrefix"}
	labelFields         = []string{"pairs", "includeSelectors", "includeTemplates"}
)

// changes is what has kustomize install something else than stands in the files, "" if there is nothing.
func (a accounts) changes() string {
	other := func(object map[string]any, known []string) string {
		for _, field := range slices.Sorted(maps.Keys(object)) {
			if !slices.Contains(known, field) {
				return fmt.Sprintf("the field %s of %s", field, a.kustomization.File)
			}
		}
		return ""
	}
	all := other(a.kustomization.Object, kustomizationFields)
	labels, _ := a.kustomization.Object["labels"].([]any)
	for _, label := range labels {
		label, _ := label.(map[string]any)
		all = cmp.Or(all, other(label, labelFields))
	}
	for _, m := range a.manifests {
		if isKustomization(m) && m.File != a.kustomization.File {
			all = cmp.Or(all, fmt.Sprintf("%s beside %s, and kustomize takes one of them", m.File, a.kustomization.File))
		}
		annotations, _, _ := unstructured.NestedMap(m.Object, "metadata", "annotations")
		for name := range annotations { // such as internal.config.kubernetes.io/previousNames
			if strings.Contains(name, "config.kubernetes.io/") {
				all = cmp.Or(all, fmt.Sprintf("the annotation %s in %s", name, m.File))
			}
		}
	}
	return all
}

// elsewhere says whether a resource of kustomize is something that is not read here.
func elsewhere(resource string) bool {
	resource = path.Clean(resource)
	return path.Base(resource) != resource || !generate.IsManifest(resource)
}
