package env

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

// A definition of 1 KB can have a rule that the API server checks for longer than a request may take. It is to blame if the
// API server serves others meanwhile, and the machine is if it does not.
func TestADefinitionThatTakesTooLongIsTheLearnersIfOthersAreServed(t *testing.T) {
	late := apierrors.NewTimeoutError("request did not complete within requested timeout", 34)
	for name, tc := range map[string]struct {
		err      error
		others   time.Duration // how long a request of somebody else takes
		learners bool
	}{
		"others are served":                 {late, 10 * time.Millisecond, true},
		"nobody is served":                  {late, time.Second, false},
		"nobody answered":                   {errors.New("connection refused"), 10 * time.Millisecond, false},
		"the API server had another reason": {apierrors.NewInternalError(errors.New("leader changed")), 10 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := current.admin
				defer func() { current.admin = before }()
				current.admin = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
						time.Sleep(tc.others)
						return nil
					},
				})
				if got := findingOf(rejected(t.Context(), tc.err)).Cause; (got == causeDefinitionRejected) != tc.learners {
					t.Errorf("the cause is %s", got)
				}
			})
		})
	}
}

// A version that nobody asks for may be one without bounds, or without the status subresource.
func TestADefinitionHasOneVersion(t *testing.T) {
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
