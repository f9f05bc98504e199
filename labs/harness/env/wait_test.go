package env

import (
	"context"
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
	for name, tc := range map[string]struct {
		wait   Wait
		status Status
		waited time.Duration
		over   bool
		cause  string // "" when the matcher's own finding is the best
	}{
		"the manager works":                           {Wait{}, Status{}, time.Hour, false, ""},
		"the manager is gone":                         {Wait{}, Status{Gone: gone}, 0, true, suite.CauseManagerExited},
		"its opening check failed":                    {Wait{}, Status{Pointless: "root"}, 0, true, suite.CauseBlocked},
		"another check failed":                        {Wait{}, Status{Failed: "other"}, time.Hour, false, ""},
		"idle before the wait began":                  {Wait{}, Status{Idle: time.Hour}, idleLimit, false, ""},
		"idle since the wait began":                   {Wait{}, Status{Idle: time.Hour}, idleLimit + 1, true, ""},
		"busy since the wait began":                   {Wait{}, Status{Idle: idleLimit}, time.Hour, false, ""},
		"Kubernetes acts, the manager is idle":        {Wait{ByKubernetes: true}, Status{Idle: time.Hour}, time.Hour, false, ""},
		"Kubernetes acts, another check failed":       {Wait{ByKubernetes: true}, Status{Failed: "other"}, 0, true, suite.CauseBlocked},
		"Kubernetes acts, AtLeast is not over":        {Wait{ByKubernetes: true, AtLeast: 5}, Status{Failed: "other"}, 4, false, ""},
		"Kubernetes acts, that time is over":          {Wait{ByKubernetes: true, AtLeast: 5}, Status{Failed: "other"}, 5, true, suite.CauseBlocked},
		"Kubernetes acts, the opening check failed":   {Wait{ByKubernetes: true, AtLeast: 5}, Status{Pointless: "root"}, 0, true, suite.CauseBlocked},
		"Kubernetes acts, and the manager ends":       {Wait{ByKubernetes: true, AtLeast: 5}, Status{Gone: gone}, 0, true, suite.CauseManagerExited},
		"idle for less, but another check has failed": {Wait{}, Status{Failed: "other", Idle: time.Hour}, shortIdleLimit + 1, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := tc.wait
				w.began, w.status = time.Now(), func() Status { return tc.status }
				time.Sleep(tc.waited)
				over, why := w.Over()
				if cause := causeOf(why); over != tc.over || cause != tc.cause {
					t.Errorf("over: %t, because of %q; want %t, %q", over, cause, tc.over, tc.cause)
				}
			})
		})
	}
}

func causeOf(err error) string {
	if err == nil {
		return ""
	}
	return finding.Of(err).Cause
}

// A manager that sends the same thing again and again will not be taken the next time either.
func TestWaitEndsAfterRefusals(t *testing.T) {
	key := types.NamespacedName{Namespace: "lab-a", Name: "tea"}
	var sent []apiproxy.Request
	write := func(name string, status int) {
		sent = append(sent, apiproxy.Request{Index: len(sent), Verb: "update", Group: "apps", Resource: "deployments", Namespace: "lab-a", Name: name, Status: status})
	}
	w := &Wait{next: 0, requests: func(since int) []apiproxy.Request { return append([]apiproxy.Request(nil), sent[since:]...) }}
	expect := func(want bool, when string) {
		t.Helper()
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
	for i := range enoughRefusals - 1 {
		write("tea", 422)
		expect(i == enoughRefusals-2, "refused again")
	}
}

// What a watch announces is read when it is announced, and otherwise not at each poll.
func TestPolledReadsChanges(t *testing.T) {
	current.env = &testEnv{manager: &ManagerProcess{}, activity: newActivityMonitor((&traffic{}).since)}
	t.Cleanup(func() { current.env = nil })
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		poll := polled("lab-a", refreshInterval, func(context.Context) (int, error) {
			reads++
			return reads, nil
		})
		expect := func(want int, when string) {
			t.Helper()
			if got, err := poll(t.Context()); got != want || err != nil {
				t.Errorf("%s: %d, %v; want %d", when, got, err, want)
			}
		}
		expect(1, "at first")
		expect(1, "nothing happened")
		current.env.activity.note("lab-b")
		expect(1, "something changed in another namespace")
		current.env.activity.note("lab-a")
		expect(2, "something changed")
		time.Sleep(refreshInterval)
		expect(3, "after a while")
	})
}

// That nothing happens shows nothing once the manager has ended by itself.
func TestPollsEndWithTheManager(t *testing.T) {
	current.shared.Gone = finding.New(suite.CauseManagerExited, "the manager goes on running", "it ended by itself")
	t.Cleanup(func() { current.shared.Gone = nil })
	if err := Sleep(t.Context(), time.Hour); err == nil || finding.Of(err).Cause != suite.CauseManagerExited {
		t.Errorf("Sleep() = %v", err)
	}
	_, err := polled("lab-a", refreshInterval, func(context.Context) (int, error) { return 0, nil })(t.Context())
	if finding.Of(err).Cause != suite.CauseManagerExited {
		t.Errorf("a poll = %v", err)
	}
}
