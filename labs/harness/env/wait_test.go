package env

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestWaitOver(t *testing.T) {
	gone := finding.New(suite.CauseManagerExited, "the manager goes on running", "it ended by itself")
	here, elsewhere := apiproxy.Request{Namespace: checkNamespace + "a"}, apiproxy.Request{Namespace: "kube-system"}
	for name, tc := range map[string]struct {
		wait   Wait
		why    error            // of the status
		failed string           // of the status
		sent   apiproxy.Request // before the last look
		waited time.Duration
		over   bool
		cause  string // "" when the matcher's own finding is the best
	}{
		"the manager works":                           {Wait{}, nil, "", here, time.Hour, false, ""},
		"the manager is gone":                         {Wait{}, gone, "", here, 0, true, suite.CauseManagerExited},
		"its opening check failed":                    {Wait{}, blocked("root"), "", here, 0, true, suite.CauseBlocked},
		"another check failed":                        {Wait{}, nil, "other", here, time.Hour, false, ""},
		"idle for a while":                            {Wait{}, nil, "", elsewhere, idleLimit, false, ""},
		"idle for too long":                           {Wait{}, nil, "", elsewhere, idleLimit + 1, true, ""},
		"idle for less, but another check has failed": {Wait{}, nil, "other", elsewhere, shortIdleLimit + 1, true, ""},
		"Kubernetes acts, the manager is idle":        {Wait{ByKubernetes: true}, nil, "", elsewhere, time.Hour, false, ""},
		"Kubernetes acts, another check failed":       {Wait{ByKubernetes: true}, nil, "other", here, 0, true, suite.CauseBlocked},
		"Kubernetes acts, AtLeast is not over":        {Wait{ByKubernetes: true, AtLeast: 5}, nil, "other", here, 4, false, ""},
		"Kubernetes acts, that time is over":          {Wait{ByKubernetes: true, AtLeast: 5}, nil, "other", here, 5, true, suite.CauseBlocked},
		"Kubernetes acts, the opening check failed":   {Wait{ByKubernetes: true, AtLeast: 5}, blocked("root"), "", here, 0, true, suite.CauseBlocked},
		"Kubernetes acts, and the manager ends":       {Wait{ByKubernetes: true, AtLeast: 5}, gone, "", here, 0, true, suite.CauseManagerExited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := tc.wait
				w.status, w.requests = func() (string, error) { return "", nil }, func(int) []apiproxy.Request { return nil }
				_, _ = w.Over()
				time.Sleep(tc.waited)
				w.status, w.requests = func() (string, error) { return tc.failed, tc.why }, func(int) []apiproxy.Request { return []apiproxy.Request{tc.sent} }
				over, why := w.Over()
				cause := ""
				if why != nil {
					cause = finding.Of(why).Cause
				}
				if over != tc.over || cause != tc.cause {
					t.Errorf("over: %t, because of %q; want %t, %q", over, cause, tc.over, tc.cause)
				}
			})
		})
	}
}

// If the API server refuses the same write again and again, it will refuse the next one.
func TestWaitEndsAfterRefusals(t *testing.T) {
	key := types.NamespacedName{Namespace: "lab-a", Name: "tea"}
	var sent []apiproxy.Request
	write := func(name string, status int) {
		sent = append(sent, apiproxy.Request{Verb: "update", Group: "apps", Resource: "deployments", Namespace: "lab-a", Name: name, Status: status})
	}
	w := &Wait{status: func() (string, error) { return "", nil }, requests: func(since int) []apiproxy.Request { return slices.Clone(sent[since:]) }}
	expect := func(want bool, when string) {
		t.Helper()
		_, _ = w.Over()
		if got := w.Refused(key, Deployments); got != want {
			t.Errorf("%s: %t", when, got)
		}
	}
	expect(false, "nothing was sent")
	for range enoughRefusals - 1 {
		write("tea", 422)
	}
	expect(false, "refused once less than often enough")
	write("coffee", 422)
	expect(false, "another object was refused")
	write("tea", 200)
	write("tea", 422)
	expect(false, "one write succeeded in between")
	write("tea", 409)
	write("tea", 422)
	expect(false, "a conflict came in between")
	for i := range enoughRefusals - 1 {
		write("tea", 422)
		expect(i == enoughRefusals-2, "refused again")
	}
}

// Without a manager, it means nothing that nothing happens.
func TestPollsEndWithTheManager(t *testing.T) {
	current.shared.Gone = finding.New(suite.CauseManagerExited, "the manager goes on running", "it ended by itself")
	t.Cleanup(func() { current.shared.Gone = nil })
	if err := Sleep(t.Context(), time.Hour); err == nil || finding.Of(err).Cause != suite.CauseManagerExited {
		t.Errorf("Sleep() = %v", err)
	}
	_, err := Polled(func(context.Context) (int, error) { return 0, nil })(t.Context())
	if finding.Of(err).Cause != suite.CauseManagerExited {
		t.Errorf("a poll = %v", err)
	}
}
