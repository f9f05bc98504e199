package env

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types can have so many rules that the API server checks their definition for longer than a request may take. With one as
// large as the course's, a machine that is too slow is to blame.
func TestADefinitionThatTakesTooLongIsTheLearnersIfItIsLarge(t *testing.T) {
	late := apierrors.NewTimeoutError("request did not complete within requested timeout", 34)
	for name, tc := range map[string]struct {
		rules    int
		err      error
		learners bool
	}{
		"large":                      {12_000, late, true},
		"as large as the course's":   {0, late, false},
		"large, and nobody answered": {12_000, errors.New("connection refused"), false},
	} {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"rules": strings.Repeat("self == 1", tc.rules)}}}
		if got := findingOf(rejected(definition, tc.err)).Cause; (got == causeDefinitionRejected) != tc.learners {
			t.Errorf("%s: the cause is %s", name, got)
		}
	}
}
