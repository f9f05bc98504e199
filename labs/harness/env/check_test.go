package env

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/operator-lab/labs/internal/finding"
)

// What the API server could not do for the checks is nobody's wrong answer.
func TestServerErrorsAreTheMachines(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a finding":        {fmt.Errorf("look: %w", finding.New("wrong-name", "a", "b")), "wrong-name"},
		"too slow":         {fmt.Errorf("list pods: %w", apierrors.NewTimeoutError("request did not complete", 1)), finding.CauseMachine},
		"etcd is away":     {apierrors.NewServerTimeout(pods, "list", 1), finding.CauseMachine},
		"not there at all": {apierrors.NewServiceUnavailable("starting"), finding.CauseMachine},
		"etcd is slow":     {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), finding.CauseMachine},
		"a right answer":   {apierrors.NewNotFound(pods, "a"), finding.CauseOther},
		"something else":   {errors.New("no luck"), finding.CauseOther},
	} {
		if got := findingOf(tc.err).Cause; got != tc.want {
			t.Errorf("%s: cause %s, want %s", name, got, tc.want)
		}
	}
}
