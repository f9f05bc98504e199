package suite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	data, err := os.ReadFile(filepath.Join(workspace, RolePath))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RolePath, err)
	}
	return parseRoles(string(data))
}

// yamlDepth is how deep values may lie in each other. Those of the definition of a Memcached lie 20 deep.
const yamlDepth = 100

// CheckYAML says what is in YAML that must not be decoded. An alias repeats a value without repeating its text, so that a
// file of 300 KB becomes gigabytes; what lies very deep takes more stack, or more text in a refusal, than there is.
// controller-gen writes neither.
func CheckYAML(text string) error {
	decoder := yamlnodes.NewDecoder(strings.NewReader(text))
	for {
		var document yamlnodes.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = checkNode(&document, 0)
		}
		if err != nil {
			return err
		}
	}
}

func checkNode(node *yamlnodes.Node, depth int) error {
	switch {
	case node.Kind == yamlnodes.AliasNode || node.Anchor != "":
		return fmt.Errorf("line %d: anchors and aliases are not read here: write the value out", node.Line)
	case depth > yamlDepth:
		return fmt.Errorf("line %d: more than %d values lie in each other", node.Line, yamlDepth)
	}
	for _, child := range node.Content {
		if err := checkNode(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// rolesLimit is how many roles a manifest may have: the harness gives each of them to the manager.
const rolesLimit = 20

// rulesLimit is how many rules a role may have: the API server complains of each, and one with 100,000 that are wrong takes
// it longer than a request may take.
const rulesLimit = 200

// wordsLimit is how many groups, resources, names and verbs a rule may have together: whoever judges rights combines them.
const wordsLimit = 200

// TooLong says whether a rule has more words than anybody combines.
func TooLong(rule rbacv1.PolicyRule) bool {
	return len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames)+len(rule.NonResourceURLs)+len(rule.Verbs) > wordsLimit
}

// parseRoles reads the roles of a manifest with any number of documents.
func parseRoles(manifest string) ([]client.Object, error) {
	if err := CheckYAML(manifest); err != nil {
		return nil, fmt.Errorf("read %s: %w", RolePath, err)
	}
	var roles []client.Object
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		if len(roles) > rolesLimit {
			return nil, fmt.Errorf("read %s: it has more than %d roles", RolePath, rolesLimit)
		}
		role := &rbacv1.ClusterRole{}
		err := decoder.Decode(role)
		switch {
		case errors.Is(err, io.EOF):
			return roles, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", RolePath, err)
		case len(role.Rules) > rulesLimit:
			return nil, fmt.Errorf("read %s: a role has more than %d rules", RolePath, rulesLimit)
		case slices.ContainsFunc(role.Rules, TooLong):
			return nil, fmt.Errorf("read %s: a rule has more than %d groups, resources and verbs", RolePath, wordsLimit)
		case role.Kind == "ClusterRole":
			roles = append(roles, &rbacv1.ClusterRole{Rules: role.Rules})
		case role.Kind == "Role":
			roles = append(roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace}, Rules: role.Rules})
		}
	}
}
