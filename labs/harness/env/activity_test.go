package env

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
)

// traffic is a record that tests add to.
type traffic []apiproxy.Request

func (t *traffic) since(i int) []apiproxy.Request { return (*t)[min(i, len(*t)):] }

func (t *traffic) send(r apiproxy.Request) {
	r.Index = len(*t)
	*t = append(*t, r)
}

var (
	listing = apiproxy.Request{Verb: "list", Group: suite.Group, Resource: "memcacheds"}
	writing = apiproxy.Request{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "lab-a"}
)

// prompt is an API server that answers at once.
func prompt(context.Context) error { return nil }

// ticks lets n punctual ticks pass.
func (a *activityMonitor) ticks(n int) {
	for range n {
		a.pass(pollInterval)
	}
}

func TestNothingIsIdleBeforeTheManagerAskedForMemcacheds(t *testing.T) {
	var sent traffic
	a := newActivityMonitor(sent.since, prompt)
	a.note("lab-a")
	sent.send(writing)
	a.ticks(100)
	if idle := a.idle([]string{"lab-a"}); idle != 0 || a.listens() {
		t.Errorf("idle for %s although the manager has not looked for Memcacheds", idle)
	}
	sent.send(listing)
	if !a.listens() {
		t.Error("it has looked for Memcacheds, and does not listen")
	}
	a.ticks(10)
	if idle := a.idle([]string{"lab-a"}); idle < 9*pollInterval || idle > 10*pollInterval {
		t.Errorf("idle for %s, ten ticks after the manager's first look", idle)
	}
}

func TestIdleTimeBeginsWithTheLastActivity(t *testing.T) {
	var sent traffic
	a := newActivityMonitor(sent.since, prompt)
	sent.send(listing)
	a.ticks(50)
	if idle := a.idle([]string{"lab-a"}); idle != 0 {
		t.Errorf("idle for %s where nothing has happened yet", idle)
	}
	for name, act := range map[string]func(){
		"a request of the manager": func() { sent.send(writing) },
		"a change of an object":    func() { a.note("lab-a") },
	} {
		a.ticks(20)
		act()
		if idle := a.idle([]string{"lab-a"}); idle != 0 {
			t.Errorf("idle for %s right after %s", idle, name)
		}
	}
	a.note("lab-a")
	a.note("lab-b")
	a.ticks(5)
	if idle := a.idle([]string{"lab-a"}); idle != 5*pollInterval {
		t.Errorf("idle for %s, five ticks after the last activity", idle)
	}
}

func TestABusyMachineIsNotIdle(t *testing.T) {
	var sent traffic
	a := newActivityMonitor(sent.since, prompt)
	sent.send(listing)
	a.ticks(1)
	a.note("lab-a")
	a.pass(time.Minute) // one tick that came a minute late
	if idle := a.idle([]string{"lab-a"}); idle > pollInterval {
		t.Errorf("idle for %s, although nobody was served for a minute", idle)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNotIdle(t *testing.T) {
	const wait = 10 * time.Second
	for name, tc := range map[string]struct {
		answered func(context.Context) error
		min, max time.Duration // of rest after wait
	}{
		"it answers":        {prompt, wait - 2*pollInterval, wait},
		"it hangs once":     {hangs(5 * time.Second), wait - 5*time.Second - 2*pollInterval, wait - 5*time.Second + 2*pollInterval},
		"it refuses to":     {func(context.Context) error { return errors.New("etcdserver: request timed out") }, 0, 0},
		"it answers slowly": {func(context.Context) error { time.Sleep(2 * time.Second); return nil }, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent traffic
				sent.send(listing)
				a := newActivityMonitor(sent.since, tc.answered)
				a.note("lab-a")
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				a.keepTime(ctx)
				if idle := a.idle([]string{"lab-a"}); idle < tc.min || idle > tc.max {
					t.Errorf("idle for %v, want %v to %v", idle, tc.min, tc.max)
				}
			})
		})
	}
}

func TestAnAPIServerThatServesEverybodyIsAskedLess(t *testing.T) {
	for name, tc := range map[string]struct {
		takes    time.Duration
		min, max int // questions in ten seconds
	}{
		"at once": {0, 30, 35},
		"slowly":  {2 * pollInterval, 45, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				a := newActivityMonitor((&traffic{}).since, func(context.Context) error { asked++; time.Sleep(tc.takes); return nil })
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				a.keepTime(ctx)
				if asked < tc.min || asked > tc.max {
					t.Errorf("asked %d times, want %d to %d", asked, tc.min, tc.max)
				}
			})
		})
	}
}

// hangs is an API server that lets somebody wait, and then goes on.
func hangs(d time.Duration) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(d)
		d = 0
		return nil
	}
}

func TestAStartedManagerAsksAnew(t *testing.T) {
	var sent traffic
	a := newActivityMonitor(sent.since, prompt)
	sent.send(listing)
	a.note("lab-a")
	a.ticks(50)
	a.restart()
	if idle := a.idle([]string{"lab-a"}); idle != 0 {
		t.Errorf("idle for %s although the manager was just started", idle)
	}
	a.ticks(50)
	sent.send(listing)
	a.ticks(1)
	if idle := a.idle([]string{"lab-a"}); idle > pollInterval {
		t.Errorf("idle for %s, right after the manager's first look", idle)
	}
}

func TestOnlyNamespacesOfChecksAreKept(t *testing.T) {
	var sent traffic
	a := newActivityMonitor(sent.since, prompt)
	a.note("lab-a")
	sent.send(apiproxy.Request{Verb: "get", Resource: "pods", Namespace: "default"})
	a.ticks(1)
	if _, kept := a.last["default"]; kept {
		t.Error("one is kept that is no check's")
	}
}
