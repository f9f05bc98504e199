package rbac

import (
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// roles are those of the generated file, none when there is no file.
func roles() []generate.Manifest {
	GinkgoHelper()
	manifests, err := generate.ReadManifests(filepath.Join(env.Run().Workspace, filepath.Dir(suite.RolePath)))
	Expect(err).To(Succeed())
	return slices.DeleteFunc(manifests, func(m generate.Manifest) bool { return m.File != filepath.Base(suite.RolePath) })
}

// rulesOf are all rules of the roles, as far as they can be read as such.
func rulesOf(roles []generate.Manifest) (all []rbacv1.PolicyRule) {
	for _, role := range roles {
		if rules, err := suite.Rules(role.Object); err == nil {
			all = append(all, rules...)
		}
	}
	return all
}

// areGenerated compares the learner's roles with those that controller-gen makes of the markers today. marked says whether there
// are markers, be they where controller-gen does not look.
func areGenerated(have, want []generate.Manifest, marked bool) error {
	const expected = "the role that controller-gen makes of today's markers in " + suite.RolePath
	switch {
	case len(have) == 0 && !marked:
		return finding.New("no-role", expected, "no such file, and no RBAC marker in your code")
	case len(want) == 0:
		return finding.New("no-markers", expected, "controller-gen does not see the markers in your code, and makes no role")
	case len(have) == 0:
		return finding.New("not-generated", expected, "no such file; `make manifests` in the workspace writes it from your markers")
	case len(want) != len(have):
		return finding.New("stale", expected, "%d roles, and the markers make %d", len(have), len(want))
	}
	for i := range want {
		if err := generate.Stale(have[i], want[i], expected); err != nil {
			return err
		}
	}
	return nil
}

// isUsable wants a role with rights in all namespaces, and with rules that the API server takes: otherwise the manager has no right
// at all.
func isUsable(roles []generate.Manifest) error {
	if len(roles) == 0 {
		return finding.New("no-role", "rules for the manager in "+suite.RolePath, "no such file")
	}
	if !slices.ContainsFunc(roles, func(m generate.Manifest) bool { return m.Kind() == "ClusterRole" }) {
		return finding.New("one-namespace", "a ClusterRole, as Memcacheds may be in any namespace", "only a Role, which counts in its namespace")
	}
	for _, rule := range rulesOf(roles) {
		if len(rule.NonResourceURLs) == 0 && (len(rule.APIGroups) == 0 || len(rule.Resources) == 0) {
			return finding.New("role-refused", "rules with groups and resources", "a rule with the verbs %s, the groups %q and the resources %q",
				strings.Join(rule.Verbs, ", "), rule.APIGroups, rule.Resources)
		}
	}
	return nil
}
