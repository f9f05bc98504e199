package status

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Paths of a scale that lead elsewhere are the learner's, although the API server calls that an error of its own.
func TestWhoseFaultAScaleIs(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		cause string
	}{
		"no scale":         {apierrors.NewNotFound(schema.GroupResource{}, "scale"), "no-scale"},
		"no such specpath": {apierrors.NewInternalError(errors.New("the spec replicas field \".spec.size\" does not exist")), "wrong-specpath"},
		"another type": {
			apierrors.NewInternalError(errors.New(".status.sel accessor error: map[a:b] is of the type map[string]interface {}, expected string")), "other",
		},
		"a broken server": {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), ""},
	} {
		f, found := errors.AsType[*finding.Finding](noScale(tc.err))
		if found != (tc.cause != "") || found && f.Cause != tc.cause {
			t.Errorf("%s: %v", name, f)
		}
	}
}
