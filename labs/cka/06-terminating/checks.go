package terminating

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{
		"gone": gone, "nothing-left": nothingLeft, "others-kept": othersKept,
	}}
}

// gone waits for the namespace controller, which looks again within eight seconds, unless a finalizer is still there.
func gone(ctx context.Context, r *practice.Reader) error {
	err := terminating(ctx, r)
	if all, _ := memcacheds(ctx, r); slices.ContainsFunc(all, func(m unstructured.Unstructured) bool {
		return m.GetNamespace() == r.Values["namespace"] && len(m.GetFinalizers()) > 0
	}) {
		return err
	}
	return r.Eventually(ctx, func(ctx context.Context) error { return terminating(ctx, r) })
}

func terminating(ctx context.Context, r *practice.Reader) error {
	namespace := &corev1.Namespace{}
	if err := r.Get(ctx, client.ObjectKey{Name: r.Values["namespace"]}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		return finding.New("recreated", "no namespace "+namespace.Name, "there is one, and nobody deletes it")
	}
	why := "it is " + string(namespace.Status.Phase)
	for _, c := range namespace.Status.Conditions {
		if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
			why += ": " + c.Message
		}
	}
	return finding.New("terminating", "no namespace "+namespace.Name, "%s", why)
}

// memcacheds are those of all namespaces.
func memcacheds(ctx context.Context, r *practice.Reader) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "MemcachedList"})
	err := r.List(ctx, list)
	return list.Items, err
}

// noKind says that the API server does not serve Memcacheds.
func noKind(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

func nothingLeft(ctx context.Context, r *practice.Reader) error {
	all, err := memcacheds(ctx, r)
	for _, m := range all {
		if m.GetNamespace() == r.Values["namespace"] {
			return finding.New("orphaned", "no Memcached of the namespace is left", "the Memcached %s/%s is still stored, with the finalizers %v",
				m.GetNamespace(), m.GetName(), m.GetFinalizers())
		}
	}
	if noKind(err) { // others-kept has a finding about that
		return nil
	}
	return err
}

func othersKept(ctx context.Context, r *practice.Reader) error {
	where := r.Values["other"] + "/sessions"
	expected := "the Memcached " + where + " with its finalizer " + r.Values["finalizer"]
	all, err := memcacheds(ctx, r)
	i := slices.IndexFunc(all, func(m unstructured.Unstructured) bool { return m.GetNamespace()+"/"+m.GetName() == where })
	switch {
	case noKind(err):
		return finding.New("definition-deleted", expected, "the API server does not know Memcacheds any more")
	case err != nil:
		return err
	case i < 0:
		return finding.New("deleted", expected, "there is no such Memcached")
	case all[i].GetDeletionTimestamp() != nil:
		return finding.New("deleted", expected, "it is being deleted")
	case !slices.Contains(all[i].GetFinalizers(), r.Values["finalizer"]):
		return finding.New("finalizer-removed", expected, "its finalizers are %v", all[i].GetFinalizers())
	}
	return nil
}
