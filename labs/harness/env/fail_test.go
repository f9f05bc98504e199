package env

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/internal/finding"
)

func TestGomegaHandsOverErrors(t *testing.T) {
	f := finding.New("wrong-name", "a Deployment tea,\nas the Memcached", "a Deployment coffee,\nof nobody")
	wrapped := fmt.Errorf("look: %w", f)
	polls := 0
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
		"Eventually, a polled error": {func(g gomega.Gomega) {
			g.Eventually(t.Context(), func(context.Context) (int, error) { return 0, wrapped }).WithTimeout(time.Millisecond).Should(gomega.Equal(1))
		}, f.Cause},
		"Eventually, a polled error after a value": {func(g gomega.Gomega) {
			g.Eventually(func() (int, error) {
				if polls++; polls > 1 {
					return 0, f
				}
				return 1, nil
			}).WithTimeout(50 * time.Millisecond).Should(gomega.Equal(2))
		}, f.Cause},
		"Eventually, an error that is over": {func(g gomega.Gomega) {
			polls := 0
			g.Eventually(func() (int, error) {
				if polls++; polls > 1 {
					return 1, nil
				}
				return 0, f
			}).WithTimeout(50 * time.Millisecond).Should(gomega.Equal(2))
		}, finding.CauseOther},
		"Eventually, told to stop": {func(g gomega.Gomega) {
			g.Eventually(func() (int, error) { return 0, gomega.StopTrying("enough").Wrap(f) }).Should(gomega.Equal(1))
		}, f.Cause},
		"Consistently":             {func(g gomega.Gomega) { g.Consistently(func() error { return wrapped }).Should(gomega.Succeed()) }, f.Cause},
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
func TestGomegaStandsInForItsDefault(t *testing.T) {
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
