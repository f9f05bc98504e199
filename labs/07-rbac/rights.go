package rbac

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const group, rolePath = "cache.example.com", "config/rbac/role.yaml"

var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

func allow(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// ceiling is the most that the role may grant, also for the operator of a later lab, whose spec has more fields. The lesson has it as
// a table, without what each account may ask about itself.
func ceiling(has func(field string) bool) []rbacv1.PolicyRule {
	most := []rbacv1.PolicyRule{
		allow(group, everyVerb, "memcacheds", "memcacheds/status", "memcacheds/finalizers"),
		allow("apps", everyVerb, "deployments"),
		allow("coordination.k8s.io", everyVerb, "leases"),
		allow("", []string{"create", "patch", "update"}, "events"),
		allow("events.k8s.io", []string{"create", "patch", "update"}, "events"),
		allow("", []string{"get", "list", "watch"}, "pods"),
		allow("authentication.k8s.io", []string{"create"}, "tokenreviews", "selfsubjectreviews"),
		allow("authorization.k8s.io", []string{"create"}, "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
	}
	if has("optionsFrom") {
		most = append(most, allow("", everyVerb, "services"), allow("", []string{"get", "list", "watch"}, "configmaps"))
	}
	if has("memory") {
		most = append(most, allow("", []string{"get", "list", "watch"}, "namespaces"))
	}
	return most
}

// beyond is a finding about the rules that most does not cover, nil if there is none.
func beyond(most, rules []rbacv1.PolicyRule) error {
	if cause, rights := excess(most, rules); cause != "" {
		return finding.New(cause, "a role that grants nothing beyond the lesson's table", "%s", rights)
	}
	return nil
}

// excess are the rules that most does not cover, a line for each, and the gravest cause, "" if there is none.
func excess(most, rules []rbacv1.PolicyRule) (cause, lines string) {
	all, excess := validation.Covers(most, rules)
	if all {
		return "", ""
	}
	cause, rights := "too-much", []string(nil)
	for _, rule := range excess {
		right := fmt.Sprintf("%s on %s in the group %q",
			strings.Join(rule.Verbs, ", "), strings.Join(slices.Concat(rule.Resources, rule.NonResourceURLs), ", "),
			strings.Join(rule.APIGroups, ", "))
		if rights = append(rights, right); strings.Contains(right, "*") {
			cause = "wildcard"
		} else if slices.Contains(rule.Resources, "secrets") && cause != "wildcard" {
			cause = "secrets"
		}
	}
	return cause, strings.Join(rights, "\n")
}

// kustomized says whether config/rbac is made for kustomize.
func kustomized() bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		_, err := os.Stat(filepath.Join(env.Run().Workspace, filepath.Dir(rolePath), name))
		return err == nil
	})
}

// install has kustomize build config/rbac of the workspace in a namespace, creates the accounts, roles and bindings, and returns the
// users that the API server knows the accounts by.
func install(ctx context.Context, namespace string) (users []string, err error) {
	objects, err := generate.Kustomize(env.Run().Workspace, filepath.Dir(rolePath), namespace, namespace+"-")
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch {
		case o.GetKind() == "ServiceAccount":
			users = append(users, "system:serviceaccount:"+namespace+":"+o.GetName())
		case o.GroupVersionKind().Group != rbacv1.GroupName:
			continue
		}
		err := env.Admin().Create(ctx, o)
		if r, refused := crd.Refused(err); refused {
			return nil, finding.New("other", "manifests in config/rbac that the API server takes", "%s: %s", o.GetName(), r.Text)
		} else if err != nil {
			return nil, err
		}
		if o.GetNamespace() == "" && !env.Run().Disposable {
			DeferCleanup(func(ctx SpecContext) error { return client.IgnoreNotFound(env.Admin().Delete(ctx, o)) })
		}
	}
	return users, nil
}

// rightsOf reads the rights that users have in all namespaces, as the API server tells them. A Role counts in its own namespace,
// which is not the one that is asked for.
func rightsOf(users []string) func(context.Context) ([]rbacv1.PolicyRule, error) {
	return func(ctx context.Context) (all []rbacv1.PolicyRule, err error) {
		config, err := clientcmd.BuildConfigFromFlags("", env.Run().Kubeconfig)
		if err != nil {
			return nil, err
		}
		question := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
		for _, user := range users {
			config.Impersonate.UserName = user // the API server adds the groups of an account
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			review, err := c.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, question, metav1.CreateOptions{})
			if err != nil {
				return nil, fmt.Errorf("ask for the rights of %s: %w", user, err)
			}
			for _, r := range review.Status.ResourceRules {
				all = append(all, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
			}
		}
		return all, nil
	}
}

// include wants the rights of the generated role.
func include(role []rbacv1.PolicyRule) *match.Matcher {
	return match.Make(func(rights []rbacv1.PolicyRule) error {
		if all, _ := validation.Covers(rights, role); !all {
			return finding.New("not-bound",
				"the role of role.yaml, and a ClusterRoleBinding to the ServiceAccount of the manager, in files that are installed",
				"no ServiceAccount of config/rbac has its rights in all namespaces")
		}
		return nil
	})
}

// beWithin wants no rights beyond a ceiling. The generated role grants none, so that others come by another binding.
func beWithin(most []rbacv1.PolicyRule) *match.Matcher {
	return match.Make(func(rights []rbacv1.PolicyRule) error {
		if cause, more := excess(most, rights); cause != "" {
			return finding.New("binds-another", "no rights of the manager beyond the lesson's table", "its ServiceAccount may also:\n%s", more)
		}
		return nil
	})
}
