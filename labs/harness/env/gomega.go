package env

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/matchers"
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

// Explainer is a matcher that says more about its last match than a text.
type Explainer interface {
	// Failure is why the last match failed; false when it succeeded.
	Failure() (Failure, bool)
}

// NewGomega makes a Gomega that hands record the reason of a failure as a value: the error that was polled or compared, what an
// [Explainer] says, or an error with Gomega's message. It can stand in for [gomega.Default].
func NewGomega(record func(Failure)) gomega.Gomega {
	return &recordingGomega{record: record, Gomega: gomega.NewGomega(func(message string, _ ...int) {
		record(Failure{Err: errors.New(message)})
	})}
}

type recordingGomega struct {
	gomega.Gomega
	record func(Failure)
}

// Inner is what Gomega asks a stand-in for its default for.
func (g *recordingGomega) Inner() gomega.Gomega { return g.Gomega }

func (g *recordingGomega) Expect(actual any, extra ...any) gomegatypes.Assertion {
	a := &assertion{actual: actual}
	for _, value := range extra {
		if err, ok := value.(error); ok {
			a.polled = err
		}
	}
	return &syncAssertion{a.gomega(g).Expect(actual, extra...), a}
}

func (g *recordingGomega) Eventually(actualOrCtx any, args ...any) gomegatypes.AsyncAssertion {
	a := &assertion{eventually: true}
	actualOrCtx, args = a.watch(actualOrCtx, args)
	return &asyncAssertion{a.gomega(g).Eventually(actualOrCtx, args...), a}
}

func (g *recordingGomega) Consistently(actualOrCtx any, args ...any) gomegatypes.AsyncAssertion {
	a := &assertion{}
	actualOrCtx, args = a.watch(actualOrCtx, args)
	return &asyncAssertion{a.gomega(g).Consistently(actualOrCtx, args...), a}
}

// assertion notes why it does not hold. It is the matcher that Gomega sees in place of the one that was given.
type assertion struct {
	gomegatypes.GomegaMatcher
	eventually bool

	mu      sync.Mutex // Ginkgo asks for the message at any time, for a progress report
	polled  error      // that the polled function returned last
	matched error      // that the matcher returned last
	actual  any        // that was compared last
}

func (a *assertion) Match(actual any) (bool, error) {
	ok, err := a.GomegaMatcher.Match(actual)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.actual, a.matched = actual, err
	return ok, err
}

// gomega is the one that fails for this assertion.
func (a *assertion) gomega(g *recordingGomega) gomega.Gomega {
	return gomega.NewGomega(func(message string, _ ...int) { g.record(a.failure(message)) })
}

func (a *assertion) failure(message string) Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, explained := failureOf(a.GomegaMatcher)
	switch err, ok := a.actual.(error); {
	case a.polled != nil: // more than what was seen before it
		f = Failure{Err: a.polled}
	case explained:
	case ok:
		f.Err = err
	case a.matched != nil:
		f.Err = a.matched
	default:
		f.Err = errors.New(message)
	}
	f.TimedOut = f.TimedOut || a.eventually && !stops(a.polled) && !stops(a.matched)
	return f
}

// failureOf is what a matcher, or the one in a SatisfyAll that failed, says about its last match.
func failureOf(m gomegatypes.GomegaMatcher) (Failure, bool) {
	switch m := m.(type) {
	case Explainer:
		return m.Failure()
	case *matchers.AndMatcher:
		for _, one := range m.Matchers {
			if f, ok := failureOf(one); ok {
				return f, true
			}
		}
	}
	return Failure{}, false
}

func stops(err error) bool {
	signal, ok := errors.AsType[gomega.PollingSignalError](err)
	return ok && signal != nil
}

// watch replaces a function that is polled by one that notes its error.
func (a *assertion) watch(actualOrCtx any, args []any) (any, []any) {
	if _, ok := actualOrCtx.(context.Context); ok && len(args) > 0 {
		args = slices.Clone(args)
		args[0] = a.noting(args[0])
		return actualOrCtx, args
	}
	return a.noting(actualOrCtx), args
}

func (a *assertion) noting(actual any) any {
	f := reflect.ValueOf(actual)
	if f.Kind() != reflect.Func || f.Type().IsVariadic() || f.Type().NumOut() < 2 {
		return actual
	}
	return reflect.MakeFunc(f.Type(), func(in []reflect.Value) []reflect.Value {
		out := f.Call(in)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.polled, _ = out[len(out)-1].Interface().(error)
		return out
	}).Interface()
}

type syncAssertion struct {
	gomegatypes.Assertion
	*assertion
}

func (s *syncAssertion) To(m gomegatypes.GomegaMatcher, description ...any) bool {
	return s.Should(m, description...)
}

func (s *syncAssertion) Should(m gomegatypes.GomegaMatcher, description ...any) bool {
	s.GomegaMatcher = m
	return s.Assertion.Should(s.assertion, description...)
}

type asyncAssertion struct {
	gomegatypes.AsyncAssertion
	*assertion
}

func (s *asyncAssertion) To(m gomegatypes.GomegaMatcher, description ...any) bool {
	return s.Should(m, description...)
}

func (s *asyncAssertion) Should(m gomegatypes.GomegaMatcher, description ...any) bool {
	s.GomegaMatcher = m
	return s.AsyncAssertion.Should(s.assertion, description...)
}

func (s *asyncAssertion) WithTimeout(d time.Duration) gomegatypes.AsyncAssertion {
	return &asyncAssertion{s.AsyncAssertion.WithTimeout(d), s.assertion}
}

func (s *asyncAssertion) WithPolling(d time.Duration) gomegatypes.AsyncAssertion {
	return &asyncAssertion{s.AsyncAssertion.WithPolling(d), s.assertion}
}

func (s *asyncAssertion) WithContext(ctx context.Context) gomegatypes.AsyncAssertion {
	return &asyncAssertion{s.AsyncAssertion.WithContext(ctx), s.assertion}
}

func (s *asyncAssertion) WithArguments(args ...any) gomegatypes.AsyncAssertion {
	return &asyncAssertion{s.AsyncAssertion.WithArguments(args...), s.assertion}
}
