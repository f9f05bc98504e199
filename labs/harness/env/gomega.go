package env

import (
	"cmp"
	"context"
	"errors"
	"slices"

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

// NewGomega makes a Gomega that hands record the reason of a failure as a value: the error that was compared or polled, what a matcher
// has told [Record], or an error with Gomega's message. It stands in for [gomega.Default].
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

// Record is told by a matcher why its last match failed, nil when it held.
func Record(f *Failure) {
	if r, ok := gomega.Default.(*recorder); ok {
		r.matcher = f
	}
}

// Inner is what Gomega asks a stand-in for its default for.
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
	r.err, r.matcher, r.eventually = nil, nil, true
	return r.Gomega.Eventually(r.noting(actualOrCtx), r.notingFirst(args)...)
}

func (r *recorder) Consistently(actualOrCtx any, args ...any) gomegatypes.AsyncAssertion {
	r.err, r.matcher, r.eventually = nil, nil, false
	return r.Gomega.Consistently(r.noting(actualOrCtx), r.notingFirst(args)...)
}

// noting has a function that returns an error alone tell it. Others are made by [Polled].
func (r *recorder) noting(polled any) any {
	switch f := polled.(type) {
	case func() error:
		return func() error { r.err = f(); return r.err }
	case func(context.Context) error:
		return func(ctx context.Context) error { r.err = f(ctx); return r.err }
	}
	return polled
}

func (r *recorder) notingFirst(args []any) []any {
	args = slices.Clone(args)
	if len(args) > 0 {
		args[0] = r.noting(args[0])
	}
	return args
}
