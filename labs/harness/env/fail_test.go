package env

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Gomega hands a text to the fail handler, and the finding has to come through.
func TestFindingsComeThroughGomega(t *testing.T) {
	f := finding.New("wrong-name", "a Deployment tea,\nas the Memcached", "a Deployment coffee,\nof nobody")
	wrapped := fmt.Errorf("look: %w", f)
	for name, tc := range map[string]struct {
		assert func(g gomega.Gomega)
		cause  string
	}{
		"Succeed":          {func(g gomega.Gomega) { g.Expect(error(f)).To(gomega.Succeed()) }, f.Cause},
		"Succeed, wrapped": {func(g gomega.Gomega) { g.Expect(wrapped).To(gomega.Succeed()) }, f.Cause},
		"HaveOccurred":     {func(g gomega.Gomega) { g.Expect(wrapped).NotTo(gomega.HaveOccurred()) }, f.Cause},
		"several values":   {func(g gomega.Gomega) { g.Expect(func() (int, error) { return 0, f }()).To(gomega.Equal(1)) }, f.Cause},
		"Eventually": {func(g gomega.Gomega) {
			g.Eventually(func() error { return f }).WithTimeout(time.Millisecond).Should(gomega.Succeed())
		}, f.Cause},
		"Eventually, a polled error": {func(g gomega.Gomega) {
			g.Eventually(func() (int, error) { return 0, wrapped }).WithTimeout(time.Millisecond).Should(gomega.Equal(1))
		}, f.Cause},
		"Consistently":                {func(g gomega.Gomega) { g.Consistently(func() error { return wrapped }).Should(gomega.Succeed()) }, f.Cause},
		"no finding, but an error":    {func(g gomega.Gomega) { g.Expect(errors.New("no luck")).To(gomega.Succeed()) }, finding.CauseOther},
		"what wraps another":          {func(g gomega.Gomega) { g.Expect(error(outer{f, errors.New("no luck")})).To(gomega.Succeed()) }, f.Cause},
		"another matcher":             {func(g gomega.Gomega) { g.Expect(3).To(gomega.Equal(4)) }, finding.CauseOther},
		"another matcher, afterwards": {func(g gomega.Gomega) { Report(Unmet{Err: f}); g.Expect(3).To(gomega.Equal(4)) }, finding.CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			failed := false
			tc.assert(gomega.NewGomega(func(message string, _ ...int) {
				failed = true
				if got := findingOf(unmetIn(message).Err); got.Cause != tc.cause {
					t.Errorf("cause %s, want %s; Gomega says:\n%s", got.Cause, tc.cause, message)
				}
			}))
			if !failed {
				t.Error("nothing failed")
			}
		})
	}
}

// A learner's types or manager can make an object so large that the edit of a check does not fit any more. That is theirs.
func TestWhatIsTooLargeIsNotTheMachines(t *testing.T) {
	for message, cause := range map[string]string{
		"etcdserver: request is too large":                  finding.CauseOther,
		"rpc error: trying to send message larger than max": finding.CauseOther,
		"etcdserver: mvcc: database space exceeded":         finding.CauseOther,
		"etcdserver: leader changed":                        finding.CauseMachine,
	} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: message}}
		if f := findingOf(fmt.Errorf("patch Memcached: %w", err)); f.Cause != cause {
			t.Errorf("%s: the cause is %s, want %s", message, f.Cause, cause)
		}
	}
}

// outer shows an error that it wraps.
type outer struct {
	*finding.Finding
	Inner error
}

func (o outer) Unwrap() []error { return []error{o.Finding, o.Inner} }

// An error of the last poll says more than what was seen before it.
func TestAnErrorOfAPollIsNotReplaced(t *testing.T) {
	polls := 0
	read := polled("lab-a", 0, func(context.Context) (int, error) {
		if polls++; polls > 1 {
			return 0, apierrors.NewServiceUnavailable("etcd is away")
		}
		return 1, nil
	})
	g := gomega.NewGomega(func(message string, _ ...int) {
		Report(Unmet{Err: finding.New("not-scaled", "5 replicas", "3")}) // as a matcher does that is asked about the value before
		if got := findingOf(unmetIn(message).Err); got.Cause != finding.CauseMachine {
			t.Errorf("cause %s; Gomega says:\n%s", got.Cause, message)
		}
	})
	g.Eventually(t.Context(), read).WithTimeout(50 * time.Millisecond).Should(gomega.Equal(2))
	if polls < 2 {
		t.Errorf("%d polls", polls)
	}
}

// What ends a check says more than what its matcher saw last.
func TestWhatEndsACheckIsNotReplaced(t *testing.T) {
	Report(Unmet{Err: finding.New(suite.CauseBlocked, "the check a holds", "a"), Final: true})
	Report(Unmet{Err: finding.New("not-scaled", "5 replicas", "3")})
	if u := TakeReport(); finding.Of(u.Err).Cause != suite.CauseBlocked {
		t.Errorf("reported is %v", u.Err)
	}
	if u := TakeReport(); u != nil {
		t.Errorf("reported is still %v", u.Err)
	}
}
