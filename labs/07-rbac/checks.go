// Package rbac holds the checks of lab 7: the manager works with the rights of its generated role, and
// these are no more than it needs. Labs 4 to 6 run again under that role.
package rbac

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

var _ = Describe("Lab 7", env.Lab(7), func() {
	It("has a role that controller-gen made", env.Check("role-generated", env.First), func(ctx SpecContext) {
		made, err := env.Generated()
		Expect(err).To(Succeed())
		want, err := made.Role.Manifests()
		Expect(err).To(Succeed())
		Expect(sameRoles(requireRole(), want)).To(Succeed())
	})

	It("works with that role", env.Check("works-under-role"), func(ctx SpecContext) {
		roles := requireRole()
		Expect(holdsClusterRole(roles)).To(Succeed())
		Expect(acceptable(rulesOf(roles))).To(Succeed())
		since := env.RequestCount()
		m := created(ctx)
		Eventually(ctx, env.DeploymentOf(m)).Should(unlessRefused(ctx, 0, match.Exist()))
		Eventually(ctx, env.MemcachedOf(m)).Should(unlessRefused(ctx, since, haveCondition("Available")))
		Eventually(ctx, env.EventsOf(m)).Should(unlessRefused(ctx, since, haveSomeEvent()))
		Expect(m.SetSpec(ctx, "size", 1)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(unlessRefused(ctx, since, match.HaveReplicas(1).Because("not-scaled")))
		Expect(refusals(ctx, 0)).To(Succeed())
	})

	It("grants no more than it needs", env.Check("role-within-ceiling"), func(ctx SpecContext) {
		roles := requireRole()
		refused := newRefusals(ctx, 0)
		works := match.Exist().Because("does-not-work").KeepCause().StopIf(func() error {
			if err := refused(); err != nil {
				return finding.Of(err).WithCause("does-not-work")
			}
			return nil
		})
		m := created(ctx)
		Eventually(ctx, env.DeploymentOf(m)).Should(works)
		_, memcacheds, err := env.LearnersResource(ctx)
		Expect(err).To(Succeed())
		most := ceiling(memcacheds)
		if f := excess(most, rulesOf(roles)); f != nil {
			Expect(f).To(Succeed())
		}
		installed, err := build(env.Run().Workspace, env.Run().Scratch, m.Namespace, env.RandomName()+"-")
		Expect(err).To(Succeed())
		if installed != nil {
			Expect(installed.install(ctx)).To(Succeed())
			Expect(installed.grantsAtMost(ctx, most)).To(Succeed())
			Expect(installed.grants(ctx, roles)).To(Succeed())
		}
	})

	It("may block the deletion of an owner", env.Check("finalizers-granted"), func(ctx SpecContext) {
		requireRole()
		m := created(ctx)
		Eventually(ctx, env.DeploymentOf(m)).Should(unlessRefused(ctx, 0, match.Exist()))
		Expect(mayBlockDeletion(ctx, m)).To(Succeed())
	})
})

// requireRole reads the generated role, which has to be there for every check of this lab.
func requireRole() []generate.Manifest {
	GinkgoHelper()
	roles, err := readRole(env.Run().Workspace)
	Expect(err).To(Succeed())
	return roles
}

func readRole(workspace string) ([]generate.Manifest, error) {
	expected := "rules for the manager in " + suite.RolePath
	if _, err := os.Stat(filepath.Join(workspace, suite.RolePath)); err != nil {
		return nil, whyNoRole(expected)
	}
	manifests, err := generate.ReadManifests(filepath.Join(workspace, filepath.Dir(suite.RolePath)))
	if err != nil {
		return nil, err
	}
	roles := slices.DeleteFunc(manifests, func(m generate.Manifest) bool { return m.File != filepath.Base(suite.RolePath) })
	if len(rulesOf(roles)) == 0 {
		return nil, finding.New("no-rules", expected, "a file without rules")
	}
	return roles, nil
}

// acceptable wants rules that the API server takes: it refuses a role as a whole, and the manager has no right at all then.
func acceptable(rules []rbacv1.PolicyRule) error {
	for _, rule := range rules {
		if len(rule.NonResourceURLs) == 0 && (len(rule.APIGroups) == 0 || len(rule.Resources) == 0) {
			return finding.New("role-refused", "rules with groups and resources", "a rule with the verbs %s, the groups %q and the resources %q",
				strings.Join(rule.Verbs, ", "), rule.APIGroups, rule.Resources)
		}
	}
	return nil
}

// whyNoRole says whether there are no markers, no markers in a place where controller-gen looks, or no run of
// controller-gen.
func whyNoRole(expected string) error {
	made, err := env.Generated()
	if err != nil {
		return err
	}
	roles, err := made.Role.Manifests()
	switch {
	case err != nil:
		return err
	case !made.RoleMarked:
		return finding.New("no-role", expected, "no such file, and no RBAC marker in your code")
	case len(roles) == 0:
		return finding.New("no-markers", expected, "no such file; there are RBAC markers in your code, and controller-gen does not see them")
	}
	return finding.New("not-generated", expected, "no such file; `make manifests` in the workspace writes it from your markers")
}

// holdsClusterRole wants rights in all namespaces.
func holdsClusterRole(roles []generate.Manifest) error {
	var seen []string
	for _, role := range roles {
		if role.Kind() == "ClusterRole" {
			return nil
		}
		namespace, _, _ := unstructured.NestedString(role.Object, "metadata", "namespace")
		seen = append(seen, fmt.Sprintf("a %s in the namespace %s", role.Kind(), namespace))
	}
	return finding.New("one-namespace", "a ClusterRole, as Memcacheds may be in any namespace", "%s", strings.Join(seen, ", "))
}

// rulesOf are all rules of the roles, as far as they can be read as such.
func rulesOf(roles []generate.Manifest) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, role := range roles {
		if of, err := suite.Rules(role.Object); err == nil {
			all = append(all, of...)
		}
	}
	return all
}

// sameRoles compares the learner's file with what controller-gen makes of the markers today.
func sameRoles(have, want []generate.Manifest) error {
	const expected = "the role that controller-gen makes of today's markers"
	if len(want) == 0 {
		return finding.New("no-markers", expected, "controller-gen sees no marker in your code, and makes no role; the file is one that it has made before")
	}
	if len(want) != len(have) {
		return finding.New("stale", expected, "%d roles, and the markers make %d", len(have), len(want))
	}
	for i := range want {
		if err := generate.Stale(have[i], want[i], expected); err != nil {
			return err
		}
	}
	return nil
}

// created makes a Memcached.
func created(ctx context.Context) env.Memcached {
	GinkgoHelper()
	m := env.NewMemcached(env.NamespaceWithoutPods(ctx))
	Expect(m.Create(ctx)).To(Succeed())
	return m
}

// haveCondition wants a condition of a type in the status.
func haveCondition(kind string) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		c, err := env.Condition(obj, kind)
		if err == nil && c == nil {
			err = finding.New("no-status", "a condition of the type "+kind+" in the status", "none")
		}
		return err
	})
}

// haveSomeEvent wants an event, whatever it tells.
func haveSomeEvent() *match.Matcher {
	return match.Make(func(events []eventsv1.Event) error {
		if len(events) == 0 {
			return finding.New("no-events", "an event on the Memcached", "none")
		}
		return nil
	})
}

// unlessRefused ends the wait of a matcher at the first request since an index that the manager has no right to: rights do
// not come by waiting.
func unlessRefused(ctx context.Context, since int, wanted *match.Matcher) *match.Matcher {
	return wanted.KeepCause().StopIf(newRefusals(ctx, since))
}

// newRefusals asks for [refusals] when the manager has sent something since it was called last.
func newRefusals(ctx context.Context, since int) func() error {
	asked := -1
	return func() error {
		sent := env.RequestCount()
		if sent == asked {
			return nil
		}
		asked = sent
		return refusals(ctx, since)
	}
}

// refusals is a finding that lists what the manager had no right to, each thing once, or nil.
func refusals(ctx context.Context, since int) error {
	refused, err := env.Refused(ctx, since)
	if err != nil || len(refused) == 0 {
		return err
	}
	granted, err := suite.RoleRules(env.Run().Workspace)
	if err != nil {
		return err
	}
	cause := "forbidden"
	var lines []string
	for _, r := range refused {
		lines = append(lines, env.Refusal(r))
		if r.Verb == "list" || r.Verb == "watch" {
			cause = "not-synced"
		}
	}
	for _, r := range refused {
		if meant, rule := nearMiss(granted, r); meant != "" {
			cause, lines = meant, append(lines, rule)
			break
		}
	}
	return finding.New(cause, "the API server allows everything that the manager asks for", "it refused:\n%s", strings.Join(lines, "\n"))
}

// nearMiss looks for the rule that was meant to allow a request: its cause, and the rule in words.
func nearMiss(granted []rbacv1.PolicyRule, r apiproxy.Request) (cause, text string) {
	for _, rule := range granted {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				nearGroup := group == r.Group || strings.HasPrefix(group, r.Group+"/") || r.Group == "" && group == "v1"
				nearResource := resource == r.Resource || strings.EqualFold(strings.TrimSuffix(resource, "s")+"s", r.Resource)
				if !nearGroup || !nearResource {
					continue
				}
				text = fmt.Sprintf("your role has %s on %s in the group %q", strings.Join(rule.Verbs, ", "), resource, group)
				switch {
				case len(rule.ResourceNames) > 0:
					return "by-name", text + ", for the names " + strings.Join(rule.ResourceNames, ", ")
				case group != r.Group || resource != r.Resource || strings.ContainsAny(strings.Join(rule.Verbs, " "), ";,"):
					return "misnamed", text
				}
			}
		}
	}
	return "", ""
}

// mayBlockDeletion asks for the right that admission wants of whoever sets blockOwnerDeletion. On kind
// no request shows it, so it is asked for directly.
func mayBlockDeletion(ctx context.Context, m env.Memcached) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	if !blocksDeletion(d) {
		return nil
	}
	allowed, err := env.May(ctx, "update", suite.Group, "memcacheds", "finalizers", m.Namespace)
	if err != nil {
		return err
	}
	if !allowed {
		return finding.New("not-granted", "the manager may update memcacheds/finalizers, as its owner reference has blockOwnerDeletion: true",
			"it may not")
	}
	return nil
}

func blocksDeletion(d *appsv1.Deployment) bool {
	for _, ref := range d.OwnerReferences {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			return true
		}
	}
	return false
}
