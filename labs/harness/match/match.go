// Package match has the Gomega matchers of the checks. A matcher that fails has a finding: a cause, which is a key of the
// check's hints in lab.yaml, what was expected, and what was seen. [env.Fail] turns it into the verdict.
//
// Give a matcher something to poll, and Eventually ends as soon as waiting makes no sense any more: see [Matcher].
//
//	Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(5).Because("not-scaled-up"))
//
// Do not negate these matchers. What must not be there has a matcher of its own: [BeGone].
package match

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
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
// keeps refusing what it writes to the object, and when a check has failed that explains this one.
type Matcher struct {
	judge func(actual any) error
	wait  *env.Wait

	mu       sync.Mutex // Ginkgo asks for the failure message at any time, for a progress report
	err      error      // of the last match
	rejected bool       // the API server keeps refusing what the manager writes

	cause       string       // of its findings, "" for their own
	wantsOne    bool         // a Deployment that is not there is a finding of its own
	exists      bool         // that finding is all that the matcher is about
	stop        func() error // ends the wait, nil when nothing does
	unexplained bool
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

// Deployment makes a matcher of a condition for a Deployment that is there. One that is not is a finding with the cause
// [env.CauseNoDeployment], and the condition is not asked.
func Deployment(condition func(*appsv1.Deployment) error) *Matcher {
	m := Make(condition)
	m.wantsOne = true
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

// Unexplained leaves the finding as it is. Otherwise what the manager's log and requests say about the object may explain it:
// a panic, or a write that was refused.
func (m *Matcher) Unexplained() *Matcher {
	m.unexplained = true
	return m
}

// Judge returns what the matcher says about a value: nil, a finding, or what kept it from one.
func (m *Matcher) Judge(actual any) error {
	if d := m.missing(actual); d != nil && !m.exists {
		return env.NoDeployment(d)
	} else if d != nil {
		return m.recast(env.NoDeployment(d))
	}
	return m.recast(m.judge(actual))
}

// missing is the Deployment that is not there, nil when it is.
func (m *Matcher) missing(actual any) *appsv1.Deployment {
	if d := deploymentIn(actual); m.wantsOne && d != nil && d.UID == "" {
		return d
	}
	return nil
}

// recast gives a finding the cause of [Matcher.Because].
func (m *Matcher) recast(err error) error {
	f, ok := errors.AsType[*finding.Finding](err)
	switch {
	case !ok || m.cause == "":
		return err
	case env.IsFinal(err):
		return env.Final(f.WithCause(m.cause))
	}
	return f.WithCause(m.cause)
}

// Match is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) Match(actual any) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = m.Judge(actual)
	if m.err == nil {
		return true, nil
	}
	over, why := m.wait.Over()
	if why != nil {
		return false, gomega.StopTrying(env.Report(env.Unmet{Err: why, Final: true}))
	}
	if m.stop != nil {
		if err := m.stop(); err != nil {
			return false, gomega.StopTrying(env.Report(env.Unmet{Err: err}))
		}
	}
	m.rejected = m.refused(actual)
	if over || env.IsFinal(m.err) || m.rejected {
		return false, gomega.StopTrying(m.failureMessage(actual))
	}
	if _, ok := errors.AsType[*finding.Finding](m.err); !ok {
		env.Report(env.Unmet{Err: m.err})
		return false, m.err
	}
	return false, nil
}

func (m *Matcher) refused(actual any) bool {
	obj, resource := about(actual)
	return obj != nil && m.wait.Refused(client.ObjectKeyFromObject(obj), resource)
}

// FailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) FailureMessage(actual any) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failureMessage(actual)
}

func (m *Matcher) failureMessage(actual any) string {
	if m.err == nil { // a later poll failed: Gomega tells that, and asks about the value before it
		return "The matcher held when it was asked last."
	}
	u := env.Unmet{Err: m.err, Rejected: m.rejected}
	obj, resource := about(actual)
	if !m.unexplained {
		u.Resource = resource
	}
	if obj != nil {
		u.Of, u.Missing = client.ObjectKeyFromObject(obj), m.missing(actual) != nil
	}
	if resource == env.Events {
		u.Missing = finding.Of(m.err).Cause == env.CauseNoEvent
	}
	return env.Report(u)
}

// NegatedFailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) NegatedFailureMessage(actual any) string {
	return format.Message(actual, "not to satisfy a matcher that is not made to be negated")
}

// about is the object that is looked at, and its resource.
func about(actual any) (client.Object, string) {
	if d := deploymentIn(actual); d != nil {
		return d, env.Deployments
	}
	switch actual := actual.(type) {
	case *unstructured.Unstructured:
		return actual, env.Memcacheds
	case *corev1.Service:
		return actual, env.Services
	case []eventsv1.Event:
		return nil, env.Events
	}
	return nil, ""
}

func deploymentIn(actual any) *appsv1.Deployment {
	switch actual := actual.(type) {
	case *appsv1.Deployment:
		return actual
	case env.Rollout:
		return actual.Deployment
	}
	return nil
}
