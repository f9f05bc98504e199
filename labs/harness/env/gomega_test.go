package env

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/operator-lab/labs/internal/finding"
)

func TestGomegaHandsOverErrors(t *testing.T) {
	f := finding.New("wrong-name", "a Deployment tea,\nas the Memcached", "a Deployment coffee,\nof nobody")
	wrapped := fmt.Errorf("look: %w", f)
	for name, tc := range map[string]struct {
		assert func(g gomega.Gomega)
		cause  string
	}{
		"Succeed":          {func(g gomega.Gomega) { g.Expect(error(f)).To(gomega.Succeed()) }, f.Cause},
		"Succeed, wrapped": {func(g gomega.Gomega) { g.Expect(wrapped).To(gomega.Succeed()) }, f.Cause},
		"several values":   {func(g gomega.Gomega) { g.Expect(func() (int, error) { return 0, f }()).To(gomega.Equal(1)) }, f.Cause},
		"Eventually": {func(g gomega.Gomega) {
			g.Eventually(func() error { return f }).WithTimeout(time.Millisecond).Should(gomega.Succeed())
		}, f.Cause},
		"Consistently": {func(g gomega.Gomega) {
			g.Consistently(t.Context(), func(context.Context) error { return wrapped }).Should(gomega.Succeed())
		}, f.Cause},
		"no finding, but an error": {func(g gomega.Gomega) { g.Expect(errors.New("no luck")).To(gomega.Succeed()) }, finding.CauseOther},
		"another matcher":          {func(g gomega.Gomega) { g.Expect(3).To(gomega.Equal(4)) }, finding.CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			failed := false
			tc.assert(NewGomega(func(failure Failure) {
				failed = true
				if got := findingOf(failure.Err); got.Cause != tc.cause {
					t.Errorf("cause %s, want %s: %v", got.Cause, tc.cause, failure.Err)
				}
			}))
			if !failed {
				t.Error("nothing failed")
			}
		})
	}
}

// Checks use Gomega's own functions.
func TestGomegaReplacesDefault(t *testing.T) {
	before := gomega.Default
	t.Cleanup(func() { gomega.Default = before })
	f := finding.New("wrong-name", "a", "b")
	var got error
	gomega.Default = NewGomega(func(failure Failure) { got = failure.Err })
	gomega.Expect(error(f)).To(gomega.Succeed())
	if !errors.Is(got, f) {
		t.Errorf("recorded is %v", got)
	}
}

// A request of the checks that the API server could not serve is not the learner's mistake.
func TestServerErrorIsMachine(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a finding":        {fmt.Errorf("look: %w", finding.New("wrong-name", "a", "b")), "wrong-name"},
		"too slow":         {fmt.Errorf("list pods: %w", apierrors.NewTimeoutError("request did not complete", 1)), finding.CauseMachine},
		"not there at all": {apierrors.NewServiceUnavailable("starting"), finding.CauseMachine},
		"a right answer":   {apierrors.NewNotFound(pods, "a"), finding.CauseOther},
		"something else":   {errors.New("no luck"), finding.CauseOther},
	} {
		if got := findingOf(tc.err).Cause; got != tc.want {
			t.Errorf("%s: cause %s, want %s", name, got, tc.want)
		}
	}
}
