// Package match has the Gomega matchers of the checks. A matcher that fails has a finding: a cause, which is a key of the
// check's hints in lab.yaml, what was expected, and what was seen. The check's Gomega takes it from there: see [env.NewGomega].
//
// Give a matcher something to poll, and Eventually ends as soon as waiting makes no sense any more: see [Matcher].
//
//	Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(5).Because("not-scaled-up"))
//	Eventually(ctx, env.DeploymentOf(m)).Should(match.Because("paused", "a Deployment that is not paused", HaveField("Spec.Paused", BeFalse())))
//
// Do not negate these matchers. What must not be there has a matcher of its own: [BeGone].
package match

import (
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

// Matcher is a condition that returns a finding. It is made for one assertion.
//
// It ends Eventually early when the manager has ended by itself, when it has done nothing for four seconds, when the API server
// keeps refusing what it writes to the object, and when a failed check makes this one pointless.
type Matcher struct {
	judge     func(actual any) error
	wait      *env.Wait
	failure   atomic.Pointer[env.Failure] // Ginkgo asks for the message at any time, for a progress report
	cause     string                      // of its findings, "" for their own
	exists    bool                        // the cause is that of a Deployment that is not there, too
	stop      func() error                // ends the wait, nil when nothing does
	keepCause bool
}

// Make makes a matcher of a condition: it returns nil, a finding, or what kept it from one.
func Make[T any](condition func(T) error) *Matcher {
	return &Matcher{wait: env.NewWait(), judge: func(actual any) error {
		value, ok := actual.(T)
		if !ok {
			return fmt.Errorf("the matcher wants a %T, and got a %T", value, actual)
		}
		return condition(value)
	}}
}

// Because makes a matcher of one of Gomega's. A value that does not satisfy it is a finding with the cause; a Deployment that is
// not there is one with the cause [env.CauseNoDeployment].
func Because(cause, expected string, stock gomegatypes.GomegaMatcher) *Matcher {
	return Deployment(func(actual any) error {
		ok, err := stock.Match(actual)
		if err != nil || ok {
			return err
		}
		return finding.New(cause, expected, "%s", strings.Join(strings.Fields(stock.FailureMessage(actual)), " "))
	})
}

// Deployment is [Make] for a condition that a Deployment has to be there for, if it is about one. One that is not there is a finding
// with the cause [env.CauseNoDeployment], and the condition is not asked.
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

// ByKubernetes says that Kubernetes has to act, and not the manager: an idle manager does not end the wait. Once another
// check has failed, the wait lasts atLeast in all, and then ends.
func (m *Matcher) ByKubernetes(atLeast time.Duration) *Matcher {
	m.wait.ByKubernetes, m.wait.AtLeast = true, atLeast
	return m
}

// Because replaces the cause, and with it the hint. A Deployment that is not there keeps [env.CauseNoDeployment], except
// for [Exist].
func (m *Matcher) Because(cause string) *Matcher {
	m.cause = cause
	return m
}

// StopIf ends the wait with an error of stop's, which is asked while the condition does not hold.
func (m *Matcher) StopIf(stop func() error) *Matcher {
	m.stop = stop
	return m
}

// KeepCause leaves the finding as it is. Otherwise what the manager's log and requests say about the object may explain it:
// a panic, or a write that was refused.
func (m *Matcher) KeepCause() *Matcher {
	m.keepCause = true
	return m
}

// Judge returns what the matcher says about a value: nil, a finding, or what kept it from one.
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

// about is the failure, with the object that is looked at and its resource.
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

// object is the object that is looked at, nil if there is no single one.
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
	return "The matcher held when it was asked last." // a later poll failed: Gomega tells that, and asks about the value before it
}

// NegatedFailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) NegatedFailureMessage(actual any) string {
	return format.Message(actual, "not to satisfy a matcher that is not made to be negated")
}
