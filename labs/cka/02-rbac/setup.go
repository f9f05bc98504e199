// Package rbac is task 2 of the CKA practice: give a ServiceAccount some rights in one namespace.
package rbac

import (
	"context"

	"github.com/example/operator-lab/labs/internal/practice"
)

func setUp(ctx context.Context, s *practice.Setup) error {
	if err := s.InstallCRD(ctx); err != nil {
		return err
	}
	return s.Apply(ctx, "setup.yaml")
}
