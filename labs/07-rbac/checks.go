// Package rbac holds the checks of lab 7: the manager works with the rights of its generated role, and
// these are no more than it needs. Labs 4 to 6 run again under that role.
package rbac

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

var _ = harness.Lab(7, func() {
	harness.Check("role-generated", harness.First, func(ctx SpecContext) {
		roles := requireRole(ctx)
		harness.Require(asGenerated(ctx, roles))
	})

	harness.Check("works-under-role", harness.First, func(ctx SpecContext) {
		harness.Require(holdsClusterRole(requireRole(ctx)))
		since := harness.Now()
		m, err := works(ctx)
		harness.Require(err)
		harness.Require(tells(ctx, m, since))
		harness.Require(m.SetSpec(ctx, "size", 1))
		harness.Require(unlessRefused(ctx, m, since, &appsv1.DeploymentList{}, func() error {
			d, err := m.Deployment(ctx)
			if err != nil {
				return err
			}
			return harness.HasReplicas(1, "not-scaled")(d)
		}))
		harness.Require(refusals(ctx, 0))
	})

	harness.Check("role-within-ceiling", harness.First, func(ctx SpecContext) {
		roles := requireRole(ctx)
		_, err := works(ctx)
		harness.Require(recast(err, "does-not-work"))
		harness.Require(withinCeiling(rules(roles)))
	})

	harness.Check("finalizers-granted", harness.First, func(ctx SpecContext) {
		requireRole(ctx)
		m, err := works(ctx)
		harness.Require(err)
		harness.Require(mayBlockDeletion(ctx, m))
	})
})

// requireRole reads the generated role, which has to be there for every check of this lab.
func requireRole(ctx context.Context) []generate.Manifest {
	GinkgoHelper()
	roles, err := readRole(ctx)
	harness.Require(err)
	return roles
}

func readRole(ctx context.Context) ([]generate.Manifest, error) {
	expected := "rules for the manager in " + harness.RolePath
	path := filepath.Join(harness.Run().Workspace, harness.RolePath)
	if _, err := os.Stat(path); err != nil {
		return nil, whyNoRole(ctx, expected)
	}
	manifests, err := generate.ReadManifests(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var roles []generate.Manifest
	for _, m := range manifests {
		if m.File == filepath.Base(path) {
			roles = append(roles, m)
		}
	}
	if len(rules(roles)) == 0 {
		return nil, finding.New("no-rules", expected, "a file without rules")
	}
	return roles, nil
}

// whyNoRole says whether there are no markers, no markers in a place where controller-gen looks, or no run of
// controller-gen.
func whyNoRole(ctx context.Context, expected string) error {
	generator, err := harness.Generator(ctx)
	if err != nil {
		return err
	}
	mentioned, err := generator.MentionsRole()
	if err != nil {
		return err
	}
	if !mentioned {
		return finding.New("no-role", expected, "no such file, and no RBAC marker in your code")
	}
	made, err := generator.Role(ctx, "manager-role")
	if err != nil {
		return err
	}
	if len(made) == 0 {
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

// rules are all rules of the roles, as far as they can be read as such.
func rules(roles []generate.Manifest) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, role := range roles {
		cluster := &rbacv1.ClusterRole{}
		if err := fromObject(role.Object, cluster); err == nil {
			all = append(all, cluster.Rules...)
		}
	}
	return all
}

// asGenerated compares the learner's file with what controller-gen makes of the markers today. The
// role's name is the learner's choice.
func asGenerated(ctx context.Context, have []generate.Manifest) error {
	generator, err := harness.Generator(ctx)
	if err != nil {
		return err
	}
	name, _, _ := unstructured.NestedString(have[0].Object, "metadata", "name")
	want, err := generator.Role(ctx, name)
	if err != nil {
		return err
	}
	const expected = "the role that controller-gen makes of today's markers"
	if len(want) != len(have) {
		return finding.New("stale", expected, "%d roles, and the markers make %d", len(have), len(want))
	}
	for i := range want {
		if differences := generate.Differences(have[i], want[i]); len(differences) > 0 {
			return finding.New("stale", expected, "%s", lines(differences)).With(generate.Fields(differences)...)
		}
	}
	return nil
}

func lines(differences []generate.Difference) string {
	var all []string
	for _, d := range differences {
		all = append(all, d.String())
	}
	return strings.Join(all, "\n")
}

// works makes a Memcached and waits for its Deployment, or for the first request that is refused.
func works(ctx context.Context) (harness.Memcached, error) {
	GinkgoHelper()
	m := harness.Invent(harness.Rand(), harness.PodlessNamespace(ctx))
	if err := m.Create(ctx); err != nil {
		return m, err
	}
	return m, unlessRefused(ctx, m, 0, &appsv1.DeploymentList{}, func() error {
		_, err := m.Deployment(ctx)
		return err
	})
}

// tells waits for the status and for an event.
func tells(ctx context.Context, m harness.Memcached, since int) error {
	memcacheds := &unstructured.UnstructuredList{}
	memcacheds.SetAPIVersion(harness.Group + "/v1alpha1")
	memcacheds.SetKind(harness.Kind + "List")
	err := unlessRefused(ctx, m, since, memcacheds, func() error {
		obj, err := m.Get(ctx)
		if err != nil {
			return err
		}
		c, err := harness.Condition(obj, "Available")
		if err == nil && c == nil {
			err = finding.New("no-status", "a condition of the type Available in the status", "none")
		}
		return err
	})
	if err != nil {
		return err
	}
	return unlessRefused(ctx, m, since, &eventsv1.EventList{}, func() error {
		events, err := m.Events(ctx)
		if err == nil && len(events) == 0 {
			err = finding.New("no-events", "an event on the Memcached", "none")
		}
		return err
	})
}

// unlessRefused waits for cond, and ends at the first request that the manager has no right to: rights do not come
// by waiting.
func unlessRefused(ctx context.Context, m harness.Memcached, since int, list client.ObjectList, cond func() error) error {
	return harness.UntilAnswered(ctx, harness.StartBudget, m.Namespace, list, func() error {
		err := cond()
		if err == nil {
			return nil
		}
		if refused := refusals(ctx, since); refused != nil {
			return harness.Stop(refused)
		}
		return err
	})
}

// refusals is a finding that lists what the manager had no right to, each thing once, or nil.
func refusals(ctx context.Context, since int) error {
	refused, err := harness.Refused(ctx, since)
	if err != nil || len(refused) == 0 {
		return err
	}
	cause := "forbidden"
	var lines []string
	for _, r := range refused {
		lines = append(lines, harness.Refusal(r))
		if r.Verb == "list" || r.Verb == "watch" {
			cause = "not-synced"
		}
	}
	return finding.New(cause, "the API server allows everything that the manager asks for", "it refused:\n%s", strings.Join(lines, "\n"))
}

// recast gives a failure of the manager the cause under which this check explains it.
func recast(err error, cause string) error {
	if err == nil {
		return nil
	}
	return finding.Of(err).WithCause(cause)
}

// mayBlockDeletion asks for the right that admission wants of whoever sets blockOwnerDeletion. On kind
// no request shows it, so it is asked for directly.
func mayBlockDeletion(ctx context.Context, m harness.Memcached) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	if !blocksDeletion(d) {
		return nil
	}
	allowed, err := harness.Allowed(ctx, "update", harness.Group, "memcacheds", "finalizers", m.Namespace)
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
