package suite

import (
	"fmt"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/plain"
)

// What the contract card says of a workspace.
const (
	// Group is the API group of the Memcached.
	Group = "cache.example.com"
	// Kind is its kind.
	Kind = "Memcached"
	// CRDName is the name of the definition of Memcached.
	CRDName = "memcacheds." + Group
	// ManifestDir is where the workspace keeps its definitions.
	ManifestDir = "config/crd/bases"
	// RolePath is where controller-gen writes the manager's rights, relative to the workspace.
	RolePath = "config/rbac/role.yaml"
)

// RoleRules are the rights that the generated role of a workspace grants.
func RoleRules(workspace string) ([]rbacv1.PolicyRule, error) {
	roles, err := ReadRoles(workspace)
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, role := range roles {
		switch role := role.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, role.Rules...)
		case *rbacv1.Role:
			rules = append(rules, role.Rules...)
		}
	}
	return rules, nil
}

// ReadRoles reads every ClusterRole and Role of a workspace's config/rbac/role.yaml: their rules and namespaces, and nothing
// else. Neither a name nor an aggregation may give them more rights than their rules say.
func ReadRoles(workspace string) ([]client.Object, error) {
	data, err := plain.ReadFile(filepath.Join(workspace, RolePath))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RolePath, err)
	}
	return parseRoles(string(data))
}

// Rules are the rules of a role. What grants them and what judges them has to see the same ones, so that both ask here.
func Rules(role map[string]any) ([]rbacv1.PolicyRule, error) {
	var read rbacv1.ClusterRole
	// Unlike encoding/json this takes the names of fields as they are written, as the API server does.
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"rules": role["rules"]}, &read)
	if err != nil {
		return nil, fmt.Errorf("read the rules of a role: %w", err)
	}
	return read.Rules, nil
}

// parseRoles reads the roles of a manifest with any number of documents.
func parseRoles(manifest string) ([]client.Object, error) {
	objects, err := ReadYAML(manifest)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RolePath, err)
	}
	var roles []client.Object
	for _, object := range objects {
		isRole := object["kind"] == "Role"
		if !isRole && object["kind"] != "ClusterRole" {
			continue
		}
		rules, err := Rules(object)
		namespace, _, _ := unstructured.NestedString(object, "metadata", "namespace")
		switch {
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", RolePath, err)
		case isRole && namespace == "":
			return nil, fmt.Errorf("read %s: a Role has no namespace", RolePath)
		case isRole:
			roles = append(roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Rules: rules})
		default:
			roles = append(roles, &rbacv1.ClusterRole{Rules: rules})
		}
	}
	return roles, nil
}
