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
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// roles are those of the generated file, none when there is no file.
func roles() []generate.Manifest {
	GinkgoHelper()
	manifests, err := generate.ReadManifests(filepath.Join(env.Run().Workspace, filepath.Dir(rolePath)))
	Expect(err).To(Succeed())
	return slices.DeleteFunc(manifests, func(m generate.Manifest) bool { return m.File != filepath.Base(rolePath) })
}

// areGenerated compares the learner's roles with those that controller-gen makes of the markers today. marked says whether there
// are markers, be they where controller-gen does not look.
func areGenerated(have, want []generate.Manifest, marked bool) error {
	const expected = "the role that controller-gen makes of today's markers in " + rolePath
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

// usableRules are the rules of the role. It fails the check if there are none for all namespaces, or if the API server does not take
// them: otherwise the manager has no right at all.
func usableRules() []rbacv1.PolicyRule {
	GinkgoHelper()
	var kinds []string
	for _, role := range roles() {
		kinds = append(kinds, role.Kind())
	}
	Expect(kinds).To(match.Because("no-role", "rules for the manager in "+rolePath, Not(BeEmpty())))
	Expect(kinds).To(match.Because("one-namespace", "a ClusterRole, as Memcacheds may be in any namespace", ContainElement("ClusterRole")))
	rules, err := suite.RoleRules(env.Run().Workspace)
	Expect(err).To(Succeed())
	for _, rule := range rules {
		if len(rule.NonResourceURLs) == 0 && (len(rule.APIGroups) == 0 || len(rule.Resources) == 0) {
			Expect(finding.New("role-refused", "rules with groups and resources", "a rule with the verbs %s, the groups %q and the resources %q",
				strings.Join(rule.Verbs, ", "), rule.APIGroups, rule.Resources)).To(Succeed())
		}
	}
	return rules
}
