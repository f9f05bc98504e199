package harness

import (
	"context"
	"errors"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// Group is the API group of the Memcached.
	Group = "cache.example.com"
	// CRDName is the name of the definition of Memcached.
	CRDName = "memcacheds." + Group

	// CauseNoManifest is the cause when config/crd/bases holds no definition of Memcached.
	CauseNoManifest = "no-manifest"
	// CauseRefused is the cause when the API server does not take the definition.
	CauseRefused = "refused"
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
	return finding.New(CauseRefused, "the API server takes the manifest in "+ManifestDir, "%v", err)
}

func installManifest(ctx context.Context) error {
	manifest, err := Manifest()
	if err != nil {
		return err
	}
	definition, err := manifest.Definition()
	if err != nil {
		return finding.New(CauseRefused, "a CustomResourceDefinition in "+ManifestDir+"/"+manifest.File, "%v", err)
	}
	return crd.Install(ctx, suite.admin, definition)
}
