// Package terminating is task 6 of the CKA practice: free a namespace that waits for finalizers.
package terminating

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/practice"
)

// setUp deletes the namespace, and waits until it says that it waits for a finalizer.
func setUp(ctx context.Context, s *practice.Setup) error {
	if err := s.InstallCRD(ctx); err != nil {
		return err
	}
	if err := s.Apply(ctx, "setup.yaml"); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Values["namespace"]}}
	if err := s.Delete(ctx, namespace); err != nil {
		return err
	}
	return s.Eventually(ctx, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		for _, c := range namespace.Status.Conditions {
			if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the namespace does not wait for a finalizer")
	})
}
