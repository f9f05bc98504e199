// Package match has the Gomega matchers of the checks. A matcher that fails has a finding: a cause, which is a key of the
// check's hints in lab.yaml, what was expected, and what was seen. The matcher hands the finding to [env.Record].
//
// With a function that polls, Eventually ends as soon as waiting makes no sense any more: see [Matcher].
//
//	Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(5).Because("not-scaled-up"))
//	Eventually(ctx, env.DeploymentOf(m)).Should(match.Because("paused", "no pause", HaveField("Spec.Paused", BeFalse())))
//
// Do not negate these matchers. To wait until a Memcached is gone, use [BeGone].
package match

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onsi/gomega/format"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// Matcher is a condition that returns a finding. Make one for each assertion.
//
// It ends Eventually early in four cases: the manager has ended by itself; it has done nothing for four seconds; the API server keeps
// refusing what it writes to the object; another check's failure makes this one pointless.
type Matcher struct {
	judge     func(actual any) error
	wait      *env.Wait
	failure   atomic.Pointer[env.Failure] // atomic, because Ginkgo asks for the message at any time, for a progress report
	cause     string                      // replaces the cause of its findings, "" for their own
	exists    bool                        // cause also replaces CauseNoDeployment
	stop      func() error                // nil for none
	keepCause bool
}

// Make makes a matcher of a condition, which returns nil, a finding, or an error that kept it from judging.
func Make[T any](condition func(T) error) *Matcher {
	return &Matcher{wait: env.NewWait(), judge: func(actual any) error {
		value, ok := actual.(T)
		if !ok {
			return fmt.Errorf("the matcher wants a %T, and got a %T", value, actual)
		}
		return condition(value)
	}}
}

// Because makes a matcher of one of Gomega's. If it does not match, the finding has the given cause; if the value is a Deployment
// that does not exist, the cause is [env.CauseNoDeployment].
func Because(cause, expected string, stock gomegatypes.GomegaMatcher) *Matcher {
	return Deployment(func(actual any) error {
		ok, err := stock.Match(actual)
		if err != nil || ok {
			return err
		}
		saw := stock.FailureMessage(actual)
		switch actual.(type) {
		case int, string: // they need no words of Gomega's
			saw = cmp.Or(fmt.Sprint(actual), "nothing")
		}
		return finding.New(cause, expected, "%s", strings.Join(strings.Fields(saw), " "))
	})
}

// Deployment is [Make] for a condition that needs an existing Deployment. If the value is a Deployment or an [env.Rollout] that does not
// exist, the finding has the cause [env.CauseNoDeployment], and condition is not called.
func Deployment[T any](condition func(T) error) *Matcher {
	m := Make(condition)
	judge := m.judge
	m.judge = func(actual any) error {
		if d, ok := object(actual).(*appsv1.Deployment); ok && d.UID == "" {
			return env.NoDeployment(d)
		}
		return judge(actual)
	}
	return m
}

// ByKubernetes says that an idle manager does not end the wait: Kubernetes has to act, or the contract grants the manager longer.
// If another check has failed, the wait ends after atLeast.
func (m *Matcher) ByKubernetes(atLeast time.Duration) *Matcher {
	m.wait.ByKubernetes, m.wait.AtLeast = true, atLeast
	return m
}

// Because replaces the cause, and with it the hint. A missing Deployment keeps [env.CauseNoDeployment], except with [Exist].
func (m *Matcher) Because(cause string) *Matcher {
	m.cause = cause
	return m
}

// StopIf calls stop while the condition does not hold. If stop returns an error, the wait ends with this error.
func (m *Matcher) StopIf(stop func() error) *Matcher {
	m.stop = stop
	return m
}

// KeepCause keeps the cause of the finding. Otherwise the manager's log and requests may give it a better one, such as a panic or a
// refused write.
func (m *Matcher) KeepCause() *Matcher {
	m.keepCause = true
	return m
}

// Judge judges a value once: it returns nil, a finding, or an error that kept it from judging.
func (m *Matcher) Judge(actual any) error {
	err := m.judge(actual)
	f, ok := errors.AsType[*finding.Finding](err)
	switch {
	case !ok || m.cause == "" || f.Cause == env.CauseNoDeployment && !m.exists:
		return err
	case env.IsFinal(err):
		return env.Final(f.WithCause(m.cause))
	}
	return f.WithCause(m.cause)
}

// Match is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) Match(actual any) (bool, error) {
	m.failure.Store(nil)
	defer func() { env.Record(m.failure.Load()) }()
	err := m.Judge(actual)
	if err == nil {
		return true, nil
	}
	over, why := m.wait.Over()
	if why == nil && m.stop != nil {
		why = m.stop()
	}
	failure := m.about(actual, err)
	failure.TimedOut = over
	if why != nil {
		failure = &env.Failure{Err: env.Final(why)}
	}
	m.failure.Store(failure)
	if over || failure.Rejected || env.IsFinal(failure.Err) {
		return false, env.Final(failure.Err)
	}
	if _, ok := errors.AsType[*finding.Finding](err); !ok {
		return false, err
	}
	return false, nil
}

// about makes the failure of a value, with its object and resource.
func (m *Matcher) about(actual any, err error) *env.Failure {
	f, cause := &env.Failure{Err: err}, finding.Of(err).Cause
	obj, resource := object(actual), ""
	switch obj.(type) {
	case *appsv1.Deployment:
		resource, f.Missing = env.Deployments, cause == env.CauseNoDeployment || m.exists
	case *unstructured.Unstructured:
		resource = env.Memcacheds
	case *corev1.Service:
		resource = env.Services
	}
	if _, ok := actual.([]eventsv1.Event); ok {
		resource, f.Missing = env.Events, cause == env.CauseNoEvent
	}
	if obj != nil {
		f.Of = client.ObjectKeyFromObject(obj)
		f.Rejected = m.wait.Refused(f.Of, resource)
	}
	if !m.keepCause {
		f.Resource = resource
	}
	return f
}

// object is the object that a value is about, nil if there is no single one.
func object(actual any) client.Object {
	if r, ok := actual.(env.Rollout); ok {
		return r.Deployment
	}
	obj, _ := actual.(client.Object)
	return obj
}

// FailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) FailureMessage(any) string {
	if f := m.failure.Load(); f != nil {
		return f.Err.Error()
	}
	return "The matcher held when it was asked last." // Gomega asks about the last value that it read; a later read has failed
}

// NegatedFailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) NegatedFailureMessage(actual any) string {
	return format.Message(actual, "not to satisfy a matcher that is not made to be negated")
}
