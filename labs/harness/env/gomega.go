package env

import (
	"cmp"
	"context"
	"errors"

	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/types"
)

// Failure is why an assertion does not hold.
type Failure struct {
	// Err is a finding, or what kept the assertion from one.
	Err error
	// Of is the object that was looked at, the zero value if there is no single one.
	Of types.NamespacedName
	// Resource is its resource: one of [Deployments], [Memcacheds], [Services] and [Events]; "" is none.
	Resource string
	// Missing says that there was no such object.
	Missing bool
	// Rejected says that the API server kept refusing what the manager wrote to the object, which ended the wait.
	Rejected bool
	// TimedOut says that the failure is one of time: a slow machine could have caused it.
	TimedOut bool
}

// recorder is a Gomega that knows why its latest assertion does not hold.
type recorder struct {
	gomega.Gomega
	err        error    // that was compared, or that a polled function returned
	matcher    *Failure // of the last match, see [Record]
	eventually bool
}

// NewGomega makes a Gomega that calls record with the reason of a failure as a value: what a matcher gave [Record], the error that
// was compared or polled, or an error with Gomega's message. It replaces [gomega.Default].
func NewGomega(record func(Failure)) gomega.Gomega {
	r := &recorder{}
	r.Gomega = gomega.NewGomega(func(message string, _ ...int) {
		f := Failure{Err: cmp.Or(r.err, errors.New(message))}
		if r.matcher != nil {
			f = *r.matcher
		}
		f.TimedOut = f.TimedOut || r.eventually && !f.Rejected && !IsFinal(f.Err)
		record(f)
	})
	return r
}

// Record takes from a matcher why its last match failed, nil when it held.
func Record(f *Failure) {
	if r, ok := gomega.Default.(*recorder); ok {
		r.matcher = f
	}
}

// Inner returns the Gomega that r wraps. Gomega calls it on a default that is not its own.
func (r *recorder) Inner() gomega.Gomega { return r.Gomega }

func (r *recorder) Expect(actual any, extra ...any) gomegatypes.Assertion {
	r.err, r.matcher, r.eventually = nil, nil, false
	for _, value := range append([]any{actual}, extra...) {
		if err, ok := value.(error); ok {
			r.err = err
		}
	}
	return r.Gomega.Expect(actual, extra...)
}

func (r *recorder) Eventually(actualOrCtx any, args ...any) gomegatypes.AsyncAssertion {
	args = r.begin(true, append([]any{actualOrCtx}, args...))
	return r.Gomega.Eventually(args[0], args[1:]...)
}

func (r *recorder) Consistently(actualOrCtx any, args ...any) gomegatypes.AsyncAssertion {
	args = r.begin(false, append([]any{actualOrCtx}, args...))
	return r.Gomega.Consistently(args[0], args[1:]...)
}

// begin resets the recorder for an assertion that polls. It wraps a polled function that returns an error alone, to keep that
// error. Functions of [Polled] keep theirs in the check.
func (r *recorder) begin(eventually bool, args []any) []any {
	r.err, r.matcher, r.eventually = nil, nil, eventually
	for i, arg := range args {
		switch f := arg.(type) {
		case func() error:
			args[i] = func() error { r.err = f(); return r.err }
		case func(context.Context) error:
			args[i] = func(ctx context.Context) error { r.err = f(ctx); return r.err }
		}
	}
	return args
}
