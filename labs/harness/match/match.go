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
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/matchers"
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
	judge func(actual any) error
	wait  *env.Wait

	mu      sync.Mutex // Ginkgo asks for the failure message at any time, for a progress report
	failure *env.Failure

	cause     string       // of its findings, "" for their own
	wantsOne  bool         // a Deployment that is not there is a finding of its own
	exists    bool         // that finding is all that the matcher is about
	stop      func() error // ends the wait, nil when nothing does
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

// Deployment makes a matcher of a condition for a Deployment that is there. One that is not is a finding with the cause
// [env.CauseNoDeployment], and the condition is not asked.
func Deployment(condition func(*appsv1.Deployment) error) *Matcher {
	m := Make(condition)
	m.wantsOne = true
	return m
}

// Because makes a matcher of one of Gomega's. A value that does not satisfy it is a finding with the cause; a Deployment that is
// not there is one with the cause [env.CauseNoDeployment].
func Because(cause, expected string, stock gomegatypes.GomegaMatcher) *Matcher {
	m := Make(func(actual any) error {
		ok, err := stock.Match(actual)
		if err != nil || ok {
			return err
		}
		return finding.New(cause, expected, "%s", seen(stock, actual))
	})
	m.wantsOne = true
	return m
}

// seen is what a matcher of Gomega's has compared: the value of a field, or what its message says.
func seen(stock gomegatypes.GomegaMatcher, actual any) string {
	field, ok := stock.(*matchers.HaveFieldMatcher)
	value := &captured{}
	if !ok {
		return strings.Join(strings.Fields(stock.FailureMessage(actual)), " ")
	}
	_, _ = gomega.HaveField(field.Field, value).Match(actual)
	return fmt.Sprintf("%s %v", field.Field, value.of)
}

// captured is a matcher that keeps what it is asked about.
type captured struct {
	gomegatypes.GomegaMatcher
	of any
}

func (c *captured) Match(actual any) (bool, error) {
	if c.of = actual; reflect.ValueOf(actual).Kind() == reflect.Pointer && !reflect.ValueOf(actual).IsNil() {
		c.of = reflect.ValueOf(actual).Elem().Interface()
	}
	return true, nil
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
	m.failure = nil
	err := m.Judge(actual)
	if err == nil {
		return true, nil
	}
	over, why := m.wait.Over()
	if why == nil && m.stop != nil {
		why = m.stop()
	}
	if why != nil {
		m.failure = &env.Failure{Err: why}
		return false, gomega.StopTrying("waiting ends").Wrap(why)
	}
	m.failure = m.about(actual, err)
	m.failure.TimedOut = over
	if over || env.IsFinal(err) || m.failure.Rejected {
		return false, gomega.StopTrying("waiting ends").Wrap(err)
	}
	if _, ok := errors.AsType[*finding.Finding](err); !ok {
		return false, err
	}
	return false, nil
}

// about is the failure, with the object that is looked at.
func (m *Matcher) about(actual any, err error) *env.Failure {
	f := &env.Failure{Err: err, Missing: m.missing(actual) != nil}
	obj, resource := object(actual)
	if obj != nil {
		f.Of = client.ObjectKeyFromObject(obj)
		f.Rejected = m.wait.Refused(f.Of, resource)
	}
	if resource == env.Events {
		f.Missing = finding.Of(err).Cause == env.CauseNoEvent
	}
	if !m.keepCause {
		f.Resource = resource
	}
	return f
}

// Failure makes the matcher an [env.Explainer].
func (m *Matcher) Failure() (env.Failure, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure == nil {
		return env.Failure{}, false
	}
	return *m.failure, true
}

// FailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) FailureMessage(any) string {
	f, failed := m.Failure()
	if !failed { // a later poll failed: Gomega tells that, and asks about the value before it
		return "The matcher held when it was asked last."
	}
	return f.Err.Error()
}

// NegatedFailureMessage is part of [gomegatypes.GomegaMatcher].
func (m *Matcher) NegatedFailureMessage(actual any) string {
	return format.Message(actual, "not to satisfy a matcher that is not made to be negated")
}

// object is the object that is looked at, and its resource.
func object(actual any) (client.Object, string) {
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
