package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// Group is the API group of the Memcached, and CRDName the name of its definition.
	Group   = "cache.example.com"
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
	return InstallCRD(ctx, definition)
}

// InstallCRD creates the definition, or replaces its spec when it exists, and waits until it is
// Established. The error tells what the API server objects to.
func InstallCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	crd = crd.DeepCopy()
	err := suite.admin.Create(ctx, crd)
	if apierrors.IsAlreadyExists(err) {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return fmt.Errorf("get definition: %w", err)
		}
		current.Spec = crd.Spec
		err = suite.admin.Update(ctx, current)
	}
	if err != nil {
		return fmt.Errorf("install definition %s: %w", crd.Name, err)
	}
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	return Until(ctx, InstallBudget, list, func() error {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return fmt.Errorf("get definition: %w", err)
		}
		return established(current)
	}, fieldName(crd.Name))
}

func established(crd *apiextensionsv1.CustomResourceDefinition) error {
	var why []string
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
		if c.Status != apiextensionsv1.ConditionTrue {
			why = append(why, fmt.Sprintf("%s: %s", c.Type, c.Message))
		}
	}
	return fmt.Errorf("definition %s is not Established: %s", crd.Name, strings.Join(why, "; "))
}
