package env

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

// A version that nobody asks for may be one without bounds, or without the status subresource.
func TestDefinitionHasOneVersion(t *testing.T) {
	versions := func(names ...string) *apiextensionsv1.CustomResourceDefinition {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		for _, name := range names {
			definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name})
		}
		return definition
	}
	if err := oneVersion(versions("v1alpha1")); err != nil {
		t.Error(err)
	}
	findingtest.Require(t, oneVersion(versions("v1alpha1", "v1beta1")), finding.CauseOther, "v1alpha1, v1beta1")
}
