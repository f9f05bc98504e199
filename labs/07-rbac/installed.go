package rbac

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// installation is what config/rbac brings into a cluster, under a namespace and a prefix as config/default gives them.
type installation struct {
	namespace, prefix string
	objects           []*unstructured.Unstructured
	everybody         []rbacv1.PolicyRule // the rights that each account has without it
}

// build has kustomize build config/rbac of the workspace. Without a kustomization there, the workspace installs its files in its own
// way, and nil is returned.
func build(workspace, scratch, namespace, prefix string) (*installation, error) {
	folder := filepath.Join(workspace, filepath.Dir(suite.RolePath))
	if !slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}) {
		return nil, nil
	}
	dir, err := os.MkdirTemp(scratch, "rbac-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if folder, err = filepath.Rel(dir, folder); err != nil {
		return nil, err
	}
	overlay := fmt.Sprintf("namespace: %s\nnamePrefix: %s\nresources: [%q]\n", namespace, prefix, folder)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, finding.New(finding.CauseOther, "manifests in config/rbac that `kustomize build` accepts", "%v", err)
	}
	i := &installation{namespace: namespace, prefix: prefix}
	for _, resource := range built.Resources() {
		object, err := resource.Map()
		if err != nil {
			return nil, err
		}
		if u := (&unstructured.Unstructured{Object: object}); u.GroupVersionKind().Group == rbacv1.GroupName || u.GetKind() == "ServiceAccount" {
			i.objects = append(i.objects, u)
		}
	}
	return i, nil
}

// install creates the objects, and returns when the API server answers by them. What lives in no namespace goes with the check.
func (i *installation) install(ctx context.Context) (err error) {
	if i.everybody, err = rules(ctx, i.user(i.stranger()), i.namespace); err != nil {
		return err
	}
	last := i.prefix + "last" // the API server reads the objects of a kind in their order, so it knows all others when it knows these
	var objects []client.Object
	for _, o := range i.objects {
		objects = append(objects, o.DeepCopy())
	}
	objects = append(objects,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: last}, Rules: marker},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: last}, Subjects: user(last), RoleRef: ref("ClusterRole", last)},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: last, Namespace: i.namespace}, Rules: localMarker},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: last, Namespace: i.namespace}, Subjects: user(last), RoleRef: ref("Role", last)})
	for _, o := range objects {
		switch err := env.Admin().Create(ctx, o); {
		case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
			return finding.New(finding.CauseOther, "manifests in config/rbac that the API server takes", "%s: %v", o.GetName(), err)
		case err != nil:
			return fmt.Errorf("install %s: %w", o.GetName(), err)
		}
		if o.GetNamespace() == "" && !env.Run().Disposable {
			DeferCleanup(func(ctx SpecContext) error { return client.IgnoreNotFound(env.Admin().Delete(ctx, o)) })
		}
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		have, err := rules(ctx, last, i.namespace)
		read, _ := validation.Covers(have, slices.Concat(marker, localMarker))
		return read, err
	})
}

// pollInterval is how often the API server is asked whether it knows what was installed, which takes some milliseconds.
const pollInterval = 20 * time.Millisecond

var (
	marker      = []rbacv1.PolicyRule{allow("lab.example.com", []string{"get"}, "everywhere")}
	localMarker = []rbacv1.PolicyRule{allow("lab.example.com", []string{"get"}, "here")}
)

func user(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
}

func ref(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// rules are the rights of a user in a namespace, as the API server tells the user.
func rules(ctx context.Context, user, namespace string) ([]rbacv1.PolicyRule, error) {
	c, err := env.As(user)
	if err != nil {
		return nil, err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask for the rights of %s: %w", user, err)
	}
	var all []rbacv1.PolicyRule
	for _, r := range review.Status.ResourceRules {
		all = append(all, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
	}
	for _, r := range review.Status.NonResourceRules {
		all = append(all, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}
	return all, nil
}

// grantsAtMost wants no account to have more rights than the ceiling, by whatever binding. In its own namespace the manager may
// have others, as for leader election, but none of what the lesson forbids.
func (i *installation) grantsAtMost(ctx context.Context, most []rbacv1.PolicyRule) error {
	for _, o := range i.objects {
		if o.Object["aggregationRule"] != nil {
			return finding.New("binds-another", "roles in config/rbac with rules of their own", "the rules of %s are those of other roles", i.name(o))
		}
	}
	for _, account := range append([]string{i.stranger()}, i.accounts()...) {
		allowed := i.everybody
		if account != i.stranger() {
			allowed = slices.Concat(most, i.everybody)
		}
		for _, namespace := range []string{"default", i.namespace} {
			have, err := rules(ctx, i.user(account), namespace)
			if err != nil {
				return err
			}
			f := excess(allowed, have)
			switch {
			case f == nil:
			case account == i.stranger():
				return finding.New("binds-everybody", "bindings for the manager's ServiceAccount alone", "each account of the cluster may: %s", f.Seen)
			case namespace == "default" || f.Cause != "too-much":
				return i.explained(allowed, f)
			}
		}
	}
	return nil
}

// explained names the binding from which too many rights come, as far as that can be told.
func (i *installation) explained(most []rbacv1.PolicyRule, f *finding.Finding) error {
	for _, o := range i.objects {
		kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
		name, bound, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		role := i.find(kind, name)
		switch {
		case !bound || name == "system:auth-delegator":
		case role == nil:
			return finding.New("binds-another", "bindings for the manager to the roles in config/rbac, and to no others",
				"%s binds %s %s, which allows: %s", i.name(o), kind, name, f.Seen)
		default:
			granted, _ := suite.Rules(role.Object)
			if worst := excess(most, granted); worst != nil && worst.Seen == f.Seen {
				return finding.New("bound-too-much", f.Expected, "%s binds %s, which allows: %s", i.name(o), i.name(role), f.Seen)
			}
		}
	}
	return finding.New("bound-too-much", f.Expected, "the roles that are bound to it allow: %s", f.Seen)
}

// grants wants the generated ClusterRole to be installed, and one of the ServiceAccounts to have its rights in all namespaces.
func (i *installation) grants(ctx context.Context, roles []generate.Manifest) error {
	const file = "role.yaml"
	roles = slices.DeleteFunc(slices.Clone(roles), func(m generate.Manifest) bool { return m.Kind() != "ClusterRole" })
	for _, role := range roles {
		if i.find("ClusterRole", i.prefix+role.Name()) == nil {
			return finding.New("not-installed", file+" among the resources of config/rbac/kustomization.yaml", "kustomize builds no ClusterRole %s", role.Name())
		}
	}
	for _, account := range i.accounts()[1:] {
		have, err := rules(ctx, i.user(account), "default")
		if err != nil {
			return err
		}
		if all, _ := validation.Covers(have, rulesOf(roles)); all {
			return nil
		}
	}
	return finding.New("not-bound", "a ClusterRoleBinding of the role in "+file+" to the ServiceAccount of the manager, in a file that is installed",
		"no ServiceAccount of config/rbac has its rights in all namespaces")
}

// accounts are the one of Pods that name none, and the ServiceAccounts.
func (i *installation) accounts() []string {
	all := []string{"default"}
	for _, o := range i.objects {
		if o.GetKind() == "ServiceAccount" {
			all = append(all, o.GetName())
		}
	}
	return all
}

// stranger is an account that no binding names.
func (i *installation) stranger() string { return i.prefix + "stranger" }

// user is how the API server names an account.
func (i *installation) user(account string) string {
	return "system:serviceaccount:" + i.namespace + ":" + account
}

// find is the object of that kind and name, nil if there is none.
func (i *installation) find(kind, name string) *unstructured.Unstructured {
	at := slices.IndexFunc(i.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if at < 0 {
		return nil
	}
	return i.objects[at]
}

// name is an object's kind and its name in config/rbac.
func (i *installation) name(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetName(), i.prefix)
}
