package env

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
