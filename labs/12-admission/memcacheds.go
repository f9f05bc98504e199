package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// holdFinalizer is a finalizer that no operator knows.
const holdFinalizer = "example.org/hold"

// randomMemory is a number of MiB that is no default.
func randomMemory() int64 { return int64(utilrand.IntnRange(defaultMemory+6, 500)) }

// withOptions is a spec that names a ConfigMap.
func withOptions(name string) map[string]any {
	return map[string]any{"optionsFrom": map[string]any{"name": name}}
}

// dryRun is a creation that stores nothing.
func dryRun(ctx context.Context, m env.Memcached, spec map[string]any) error {
	return client.NewDryRunClient(env.Admin()).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": suite.Group + "/v1alpha1", "kind": suite.Kind,
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name}, "spec": spec,
	}})
}

func createOptions(ctx context.Context, namespace, name string) error {
	return env.Admin().Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"connections": "100"},
	})
}

// annotate has a namespace ask for memory.
func annotate(ctx context.Context, namespace string, memory int64) error {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"cache.example.com/memory":"%d"}}}`, memory)
	return env.Admin().Patch(ctx, n, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// isRefusal says whether the API server has refused what was asked for.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return finding.Of(err).Cause == "refused" || ok && status.ErrStatus.Code < 500
}

// refused wants the API server to have refused what.
func refused(err error, what, cause string) error {
	switch {
	case err == nil:
		return finding.New(cause, "the API server refuses "+what, "it was accepted")
	case isRefusal(err):
		return nil
	}
	return err
}

// accepted wants err not to be a refusal.
func accepted(err error, cause string) error {
	if err != nil && isRefusal(err) {
		return finding.Of(err).WithCause(cause)
	}
	return err
}

// have wants one of these values, of which 0 is none, in a field of the spec.
func have(ctx context.Context, m env.Memcached, field, cause string, want ...int64) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return err
	}
	if value, _, _ := unstructured.NestedInt64(obj.Object, "spec", field); !slices.Contains(want, value) {
		return finding.New(cause, fmt.Sprintf("spec.%s %d", field, want[0]), "it is %d, where 0 is none", value)
	}
	return nil
}

// beToldItemSize wants a Deployment whose container is told the size of the largest item, in MiB, KiB or bytes.
func beToldItemSize(want int64) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		told := func(n int64) bool { return match.BeTold("item-size", n).Judge(d) == nil }
		if told(want) || told(want<<10) || told(want<<20) {
			return nil
		}
		return match.BeTold("item-size", want).Judge(d)
	})
}

// areWithin wants webhooks that are asked about Memcacheds alone, have no side effects, and answer soon.
func areWithin() error {
	configurations, err := env.Webhooks()
	if err != nil {
		return err
	}
	for _, configuration := range configurations {
		for _, w := range configuration.Webhooks {
			switch {
			case w.SideEffects == nil || *w.SideEffects != admissionv1.SideEffectClassNone:
				return finding.New("side-effects", "webhooks with sideEffects None", "%s has others", w.Name)
			case w.TimeoutSeconds != nil && *w.TimeoutSeconds > 10:
				return finding.New("too-slow", "a timeout of ten seconds at most", "%s may take %d", w.Name, *w.TimeoutSeconds)
			}
			for _, rule := range w.Rules {
				if !slices.Equal(rule.APIGroups, []string{suite.Group}) || slices.ContainsFunc(rule.Resources, func(r string) bool {
					return !strings.HasPrefix(r, "memcacheds")
				}) {
					return finding.New("too-broad", "rules for memcacheds of "+suite.Group+" alone", "%s is asked about %s of %s",
						w.Name, strings.Join(rule.Resources, ", "), strings.Join(rule.APIGroups, ", "))
				}
			}
		}
	}
	return nil
}
