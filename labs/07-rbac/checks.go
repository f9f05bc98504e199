// Package rbac holds the checks of lab 7: the manager works with the rights of its generated role, and these are no more than it
// needs.
package rbac

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// knownTimeout is how long the API server may take to answer by what was installed, and knownPeriod how long it is listened to then:
// roles and bindings reach its authorizer one after the other, within milliseconds.
const knownTimeout, knownPeriod, pollInterval = 3 * time.Second, 500 * time.Millisecond, 50 * time.Millisecond

var _ = Describe("Lab 7", env.Lab(7), func() {
	It("has a role that controller-gen made", env.Check("role-generated"), func(ctx SpecContext) {
		made, err := env.Generated()
		Expect(err).To(Succeed())
		want, err := made.Role.Manifests()
		Expect(err).To(Succeed())
		Expect(areGenerated(roles(), want, made.RoleMarked)).To(Succeed())
	})

	It("works with that role", env.Check("works-under-role"), func(ctx SpecContext) {
		usableRules()
		m := created(ctx)
		Eventually(ctx, env.DeploymentOf(m)).Should(unlessRefused(ctx, match.Exist()))
		Eventually(ctx, env.MemcachedOf(m)).Should(unlessRefused(ctx, match.Make(func(obj *unstructured.Unstructured) error {
			if obj.Object["status"] == nil {
				return finding.New("no-status", "a condition in the status", "no status")
			}
			return nil
		})))
		Eventually(ctx, env.EventsOf(m)).Should(unlessRefused(ctx, match.Make(func(events []eventsv1.Event) error {
			if len(events) == 0 {
				return finding.New("no-events", "an event on the Memcached", "none")
			}
			return nil
		})))
		Expect(m.SetSpec(ctx, "size", 1)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(unlessRefused(ctx, match.HaveReplicas(1).Because("not-scaled")))
		Expect(refusals(ctx)).To(Succeed())
	})

	It("grants no more than it needs", env.Check("role-within-ceiling"), func(ctx SpecContext) {
		granted := usableRules()
		_, memcacheds, err := env.LearnersResource(ctx)
		Expect(err).To(Succeed())
		most := ceiling(func(field string) bool { return memcacheds.Property("spec", field) != nil })
		Expect(beyond(most, granted)).To(Succeed())
		if !kustomized() {
			return // a workspace may bind its role in another way
		}
		users, err := install(ctx, env.Namespace(ctx))
		Expect(err).To(Succeed())
		Eventually(ctx, rightsOf(users)).WithTimeout(knownTimeout).WithPolling(pollInterval).Should(include(granted))
		Consistently(ctx, rightsOf(users)).WithTimeout(knownPeriod).WithPolling(pollInterval).Should(beWithin(most))
	})

	It("may block the deletion of an owner", env.Check("finalizers-granted"), func(ctx SpecContext) {
		granted := usableRules()
		m := created(ctx)
		Eventually(ctx, env.DeploymentOf(m)).Should(unlessRefused(ctx, match.Exist()))
		if owner := metav1.GetControllerOf(match.ExpectDeployment(ctx, m)); owner == nil || !ptr.Deref(owner.BlockOwnerDeletion, false) {
			return
		}
		needed := []rbacv1.PolicyRule{allow(group, []string{"update"}, "memcacheds/finalizers")}
		if all, _ := validation.Covers(granted, needed); !all { // on kind no request shows it
			Expect(finding.New("not-granted", "the manager may update memcacheds/finalizers, as its owner reference has blockOwnerDeletion: true",
				"it may not")).To(Succeed())
		}
	})
})

// created makes a Memcached.
func created(ctx context.Context) env.Memcached {
	GinkgoHelper()
	m := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
	Expect(m.Create(ctx)).To(Succeed())
	return m
}

// unlessRefused ends the wait of a matcher at the first request that the manager has no right to: rights do not come by waiting.
func unlessRefused(ctx context.Context, wanted *match.Matcher) *match.Matcher {
	return wanted.KeepCause().StopIf(func() error { return refusals(ctx) })
}

// refusals is a finding that lists what the manager had no right to, each thing once, or nil.
func refusals(ctx context.Context) error {
	refused, err := env.Denied(ctx)
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
		if r.Verb == "list" || r.Verb == "watch" {
			cause = "not-synced"
		}
		lines = append(lines, r.Kind()+": "+r.Message)
	}
	for _, r := range refused {
		if rule := misnamed(granted, r); rule != "" {
			cause, lines = "misnamed", append(lines, rule)
			break
		}
	}
	return finding.New(cause, "the API server allows everything that the manager asks for", "it refused:\n%s", strings.Join(lines, "\n"))
}

// misnamed is the rule that was meant to allow a request, and has another spelling; "" if there is none.
func misnamed(granted []rbacv1.PolicyRule, r apiproxy.Request) string {
	for _, rule := range granted {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				near := group == r.Group || strings.HasPrefix(group, r.Group+"/") || r.Group == "" && group == "v1"
				near = near && strings.EqualFold(strings.TrimSuffix(resource, "s")+"s", r.Resource)
				if near && (group != r.Group || resource != r.Resource || strings.ContainsAny(strings.Join(rule.Verbs, " "), ";,")) {
					return fmt.Sprintf("your role has %s on %s in the group %q", strings.Join(rule.Verbs, ", "), resource, group)
				}
			}
		}
	}
	return ""
}
