package env

import (
	"context"
	"errors"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/internal/finding"
)

// installLearnersCRD installs the workspace's own manifest, whatever its file is called, and waits until
// it is Established.
func installLearnersCRD(ctx context.Context) *finding.Finding {
	err := installManifest(ctx)
	if err == nil {
		return nil
	}
	var f *finding.Finding
	if errors.As(err, &f) {
		return f
	}
	return refused(err)
}

func installManifest(ctx context.Context) error {
	definition, err := definition()
	if err != nil {
		return err
	}
	return crd.Install(ctx, current.admin, definition)
}
