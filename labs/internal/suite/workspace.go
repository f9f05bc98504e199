package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Names and paths that the contract card prescribes.
const (
	// Group is the API group of the learner's custom resource.
	Group = "cache.example.com"
	// Kind is its kind.
	Kind = "Memcached"
	// CRDName is the name of its CustomResourceDefinition.
	CRDName = "memcacheds." + Group
	// ManifestDir is where the workspace keeps its CustomResourceDefinitions.
	ManifestDir = "config/crd/bases"
	// RolePath is where controller-gen writes the manager's rights, relative to the workspace.
	RolePath = "config/rbac/role.yaml"
)

// ReadYAML reads the objects of YAML with any number of documents. What is no object is left out.
func ReadYAML(text string) (all []map[string]any, err error) {
	documents := yamlutil.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var value any
		if err == nil {
			err = yaml.Unmarshal(document, &value)
		}
		if err != nil {
			return nil, err
		}
		if object, ok := value.(map[string]any); ok && len(object) > 0 {
			all = append(all, object)
		}
	}
}

// ReadRoles reads every ClusterRole and Role of a workspace's config/rbac/role.yaml: their rules and namespaces, and nothing
// else. A ClusterRole has no namespace. Neither a name nor an aggregation may give them more rights than their rules say.
func ReadRoles(workspace string) (roles []*rbacv1.Role, err error) {
	data, err := os.ReadFile(filepath.Join(workspace, RolePath))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RolePath, err)
	}
	objects, err := ReadYAML(string(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RolePath, err)
	}
	for _, object := range objects {
		role := &rbacv1.Role{}
		if role.Rules, err = rulesOf(object); err != nil {
			return nil, fmt.Errorf("read %s: %w", RolePath, err)
		}
		switch object["kind"] {
		case "Role":
			if role.Namespace, _, _ = unstructured.NestedString(object, "metadata", "namespace"); role.Namespace == "" {
				return nil, fmt.Errorf("read %s: a Role has no namespace", RolePath)
			}
		case "ClusterRole":
		default:
			continue
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// RoleRules are the rights that the generated role of a workspace grants.
func RoleRules(workspace string) (rules []rbacv1.PolicyRule, err error) {
	roles, err := ReadRoles(workspace)
	for _, role := range roles {
		rules = append(rules, role.Rules...)
	}
	return rules, err
}

func rulesOf(role map[string]any) ([]rbacv1.PolicyRule, error) {
	var read rbacv1.ClusterRole
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"rules": role["rules"]}, &read)
	return read.Rules, err
}
