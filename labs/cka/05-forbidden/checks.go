// Package forbidden is task 5 of the CKA practice: find out why an operator does nothing.
package forbidden

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{"works": works, "least-privilege": leastPrivilege}}
}

func setUp(ctx context.Context, s *practice.Setup) error {
	_, err := s.LoadOperator(ctx, "operator-lab.local/memcached-operator:v1")
	if err := errors.Join(err, s.InstallCRD(ctx)); err != nil {
		return err
	}
	if err := s.Apply(ctx, "setup.yaml"); err != nil {
		return err
	}
	return s.Available(ctx, s.Values["namespace"])
}

func works(ctx context.Context, r *practice.Reader) error {
	account := r.Values["namespace"] + "/" + r.Values["account"]
	for _, need := range []struct{ cause, verb, resource string }{
		{"no-binding", "list", "memcacheds.cache.example.com"},
		{"no-deployments", "create", "deployments.apps"},
	} {
		if ok, err := r.Allowed(ctx, account, need.verb, need.resource, ""); err != nil {
			return err
		} else if !ok {
			expected := fmt.Sprintf("the ServiceAccount %s may %s %s in all namespaces", account, need.verb, need.resource)
			return finding.New(need.cause, expected, "it may not")
		}
	}
	return r.Eventually(ctx, func(ctx context.Context) error {
		return cmp.Or(available(ctx, r, r.Values["team"]), available(ctx, r, r.Values["other"]))
	})
}

func available(ctx context.Context, r *practice.Reader, namespace string) error {
	m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached"}}
	if err := client.IgnoreNotFound(r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.Values["name"]}, m)); err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" && c["status"] == "True" {
			return nil
		}
	}
	return finding.New("not-available", fmt.Sprintf("the Memcached %s/%s is Available", namespace, r.Values["name"]), "it is not")
}

func leastPrivilege(ctx context.Context, r *practice.Reader) error {
	for _, no := range []struct{ cause, account, verb, resource string }{
		{"more-rights", r.Values["account"], "get", "secrets"},
		{"more-rights", r.Values["account"], "create", "pods"},
		{"more-rights", r.Values["account"], "delete", "deployments.apps"},
		{"more-rights", r.Values["account"], "delete", "memcacheds.cache.example.com"},
		{"other-account", "default", "list", "memcacheds.cache.example.com"},
	} {
		account := r.Values["namespace"] + "/" + no.account
		if ok, err := r.Allowed(ctx, account, no.verb, no.resource, r.Values["team"]); err != nil {
			return err
		} else if ok {
			return finding.New(no.cause, "only the operator has rights, and only those of the question", "%s may %s %s", account, no.verb, no.resource)
		}
	}
	return nil
}
