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
		status Status
		sent   apiproxy.Request // before the last look
		waited time.Duration
		over   bool
		cause  string // "" when the matcher's own finding is the best
	}{
		"the manager works":                           {Wait{}, Status{}, here, time.Hour, false, ""},
		"the manager is gone":                         {Wait{}, Status{Gone: gone}, here, 0, true, suite.CauseManagerExited},
		"its opening check failed":                    {Wait{}, Status{Pointless: "root"}, here, 0, true, suite.CauseBlocked},
		"another check failed":                        {Wait{}, Status{Failed: "other"}, here, time.Hour, false, ""},
		"idle for a while":                            {Wait{}, Status{}, elsewhere, idleLimit, false, ""},
		"idle for too long":                           {Wait{}, Status{}, elsewhere, idleLimit + 1, true, ""},
		"idle for less, but another check has failed": {Wait{}, Status{Failed: "other"}, elsewhere, shortIdleLimit + 1, true, ""},
		"Kubernetes acts, the manager is idle":        {Wait{ByKubernetes: true}, Status{}, elsewhere, time.Hour, false, ""},
		"Kubernetes acts, another check failed":       {Wait{ByKubernetes: true}, Status{Failed: "other"}, here, 0, true, suite.CauseBlocked},
		"Kubernetes acts, AtLeast is not over":        {Wait{ByKubernetes: true, AtLeast: 5}, Status{Failed: "other"}, here, 4, false, ""},
		"Kubernetes acts, that time is over":          {Wait{ByKubernetes: true, AtLeast: 5}, Status{Failed: "other"}, here, 5, true, suite.CauseBlocked},
		"Kubernetes acts, the opening check failed":   {Wait{ByKubernetes: true, AtLeast: 5}, Status{Pointless: "root"}, here, 0, true, suite.CauseBlocked},
		"Kubernetes acts, and the manager ends":       {Wait{ByKubernetes: true, AtLeast: 5}, Status{Gone: gone}, here, 0, true, suite.CauseManagerExited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := tc.wait
				w.status, w.requests = func() Status { return Status{} }, func(int) []apiproxy.Request { return nil }
				_, _ = w.Over()
				time.Sleep(tc.waited)
				w.status, w.requests = func() Status { return tc.status }, func(int) []apiproxy.Request { return []apiproxy.Request{tc.sent} }
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

// A manager that sends the same thing again and again will not be taken the next time either.
func TestWaitEndsAfterRefusals(t *testing.T) {
	key := types.NamespacedName{Namespace: "lab-a", Name: "tea"}
	var sent []apiproxy.Request
	write := func(name string, status int) {
		sent = append(sent, apiproxy.Request{Index: len(sent), Verb: "update", Group: "apps", Resource: "deployments", Namespace: "lab-a", Name: name, Status: status})
	}
	w := &Wait{status: func() Status { return Status{} }, requests: func(since int) []apiproxy.Request { return slices.Clone(sent[since:]) }}
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
	expect(false, "it was taken in between")
	write("tea", 409)
	write("tea", 422)
	expect(false, "a conflict came in between")
	for i := range enoughRefusals - 1 {
		write("tea", 422)
		expect(i == enoughRefusals-2, "refused again")
	}
}

// That nothing happens shows nothing once the manager has ended by itself.
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
