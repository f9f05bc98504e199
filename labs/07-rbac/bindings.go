package rbac

import (
	"fmt"
	"path"
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
	manifests []generate.Manifest
	roles     map[string][]generate.Manifest // by kind and name, of all namespaces
	names     []string                       // of the ServiceAccounts
}

func accountsOf(manifests []generate.Manifest) accounts {
	a := accounts{manifests: manifests, roles: map[string][]generate.Manifest{}}
	for _, m := range manifests {
		switch kind := m.Kind(); kind {
		case "Role", "ClusterRole":
			a.roles[kind+" "+m.Name()] = append(a.roles[kind+" "+m.Name()], m)
		case "ServiceAccount":
			a.names = append(a.names, m.Name())
		}
	}
	return a
}

// bindings are those that give something to one of the ServiceAccounts, or to everybody.
func (a accounts) bindings() (all []binding, _ error) {
	for _, m := range a.manifests {
		if kind := m.Kind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		b := binding{file: m.File}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &b.ClusterRoleBinding); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.File, err)
		}
		if b.everybody() != "" || slices.ContainsFunc(b.Subjects, a.isOurs) {
			all = append(all, b)
		}
	}
	return all, nil
}

// isOurs knows an account by its names: its own, the one under which it is a user, system:serviceaccount:<namespace>:<name>, and
// those with a prefix, which config/default gives it.
func (a accounts) isOurs(s rbacv1.Subject) bool {
	name := s.Name
	if s.Kind == rbacv1.UserKind && strings.HasPrefix(name, "system:serviceaccount:") {
		name = name[strings.LastIndex(name, ":")+1:]
	} else if s.Kind != rbacv1.ServiceAccountKind {
		return false
	}
	return slices.ContainsFunc(a.names, func(account string) bool { return strings.HasSuffix(name, account) })
}

// binding is a RoleBinding or a ClusterRoleBinding, which have the same fields.
type binding struct {
	rbacv1.ClusterRoleBinding
	file string
}

// role is the kind and the name of what is bound.
func (b binding) role() string { return b.RoleRef.Kind + " " + b.RoleRef.Name }

// everybody is a subject that stands for all users or all accounts, "" without one.
func (b binding) everybody() string {
	for _, s := range b.Subjects {
		if s.Kind == rbacv1.GroupKind && strings.HasPrefix(s.Name, "system:") {
			return s.Name
		}
	}
	return ""
}

// grantAtMost wants the accounts to have no more rights than the ceiling, by whatever binding: one to cluster-admin grants
// everything, whatever stands in the generated role. A Role is for the manager's own namespace, as the one for leader
// election, and may grant more, but none of what the lesson forbids.
func (a accounts) grantAtMost(most rights) error {
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
			for f := range most.excesses(rules([]generate.Manifest{role})) {
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
	i := slices.IndexFunc(a.manifests, func(m generate.Manifest) bool {
		return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", generate.Kustomization}, m.File)
	})
	if i < 0 {
		return nil
	}
	kustomization := a.manifests[i]
	listed, _, _ := unstructured.NestedStringSlice(kustomization.Object, "resources")
	role := path.Base(suite.RolePath)
	if !slices.ContainsFunc(listed, func(name string) bool { return path.Clean(name) == role }) {
		return finding.New("not-installed", fmt.Sprintf("%s among the resources of %s", role, kustomization.File), "%s", strings.Join(listed, ", "))
	}
	if other := slices.IndexFunc(listed, elsewhere); other >= 0 {
		return finding.New(finding.CauseOther, "YAML files of config/rbac as the resources of "+kustomization.File, "%s", listed[other])
	}
	bindings, err := a.bindings()
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if slices.ContainsFunc(generated, func(m generate.Manifest) bool { return m.Kind()+" "+m.Name() == b.role() }) {
			return nil
		}
	}
	return finding.New("not-bound", "a binding of the role in "+role+" to the ServiceAccount of the manager", "none in config/rbac")
}

// elsewhere says whether a resource of kustomize is something that is not read here.
func elsewhere(resource string) bool {
	resource = path.Clean(resource)
	return path.Base(resource) != resource || !generate.IsManifest(resource)
}
