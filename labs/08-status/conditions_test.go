package status

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/operator-lab/labs/internal/finding"
)

// What a learner's definition makes of an object decides how large it is; that a watch ends otherwise is the machine's doing.
func TestAWatchThatEndsAtALargeObjectIsNotTheMachines(t *testing.T) {
	large := apierrors.NewInternalError(errors.New("unable to decode an event from the watch stream: http: request body too large"))
	if _, ok := errors.AsType[*http.MaxBytesError](whyEnded(large)); !ok {
		t.Errorf("%v", whyEnded(large))
	}
	for _, failed := range []error{nil, errors.New("connection refused")} {
		if f, ok := errors.AsType[*finding.Finding](whyEnded(failed)); !ok || f.Cause != finding.CauseMachine {
			t.Errorf("%v: %v", failed, whyEnded(failed))
		}
	}
}
