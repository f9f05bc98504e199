package harness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/harness/recorder"
)

// traffic is a record that tests add to.
type traffic []recorder.Request

func (t *traffic) since(i int) []recorder.Request { return (*t)[min(i, len(*t)):] }

func (t *traffic) send(r recorder.Request) {
	r.Index = len(*t)
	*t = append(*t, r)
}

var (
	listing = recorder.Request{Verb: "list", Group: Group, Resource: "memcacheds"}
	writing = recorder.Request{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "lab-a"}
)

// prompt is an API server that answers at once.
func prompt(context.Context) error { return nil }

// ticks lets n punctual ticks pass.
func (p *pulse) ticks(n int) {
	for range n {
		p.pass(pollInterval)
	}
}

func TestNobodyIsAtRestBeforeTheManagerLooked(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since, prompt)
	p.note("lab-a")
	sent.send(writing)
	p.ticks(100)
	if rest := p.atRest("lab-a"); rest != 0 || p.listens() {
		t.Errorf("at rest for %s although the manager has not looked for Memcacheds", rest)
	}
	sent.send(listing)
	if !p.listens() {
		t.Error("it has looked for Memcacheds, and does not listen")
	}
	p.ticks(10)
	if rest := p.atRest("lab-a"); rest < 9*pollInterval || rest > 10*pollInterval {
		t.Errorf("at rest for %s, ten ticks after the manager's first look", rest)
	}
}

func TestRestBeginsWithTheLastActivity(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since, prompt)
	sent.send(listing)
	p.ticks(50)
	if rest := p.atRest("lab-a"); rest != 0 {
		t.Errorf("at rest for %s where nothing has happened yet", rest)
	}
	for name, act := range map[string]func(){
		"a request of the manager": func() { sent.send(writing) },
		"a change of an object":    func() { p.note("lab-a") },
	} {
		p.ticks(20)
		act()
		if rest := p.atRest("lab-a"); rest != 0 {
			t.Errorf("at rest for %s right after %s", rest, name)
		}
	}
	p.ticks(int(breath / pollInterval)) // whichever of the two came last
	p.note("lab-a")
	p.note("lab-b")
	p.ticks(5)
	if rest := p.atRest("lab-a"); rest != 5*pollInterval {
		t.Errorf("at rest for %s, five ticks after the last activity", rest)
	}
}

func TestABusyMachineIsNotRest(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since, prompt)
	sent.send(listing)
	p.ticks(1)
	p.note("lab-a")
	p.pass(time.Minute) // one tick that came a minute late
	if rest := p.atRest("lab-a"); rest > pollInterval {
		t.Errorf("at rest for %s, although nobody was served for a minute", rest)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNotRest(t *testing.T) {
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
				p := newPulse(sent.since, tc.answered)
				p.note("lab-a")
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				p.keepTime(ctx)
				if rest := p.atRest("lab-a"); rest < tc.min || rest > tc.max {
					t.Errorf("at rest for %v, want %v to %v", rest, tc.min, tc.max)
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
				p := newPulse((&traffic{}).since, func(context.Context) error { asked++; time.Sleep(tc.takes); return nil })
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				p.keepTime(ctx)
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

func TestAManagerAtWorkElsewhereIsNotAtRest(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since, prompt)
	sent.send(listing)
	p.note("lab-a")
	elsewhere := writing
	elsewhere.Namespace = "lab-b"
	for range 20 {
		sent.send(elsewhere)
		p.ticks(3)
	}
	if rest := p.atRest("lab-a"); rest != 0 {
		t.Errorf("at rest for %s while the manager writes for others", rest)
	}
	p.ticks(int(breath/pollInterval) + 7)
	if rest := p.atRest("lab-a"); rest < 7*pollInterval {
		t.Errorf("at rest for %s, although the manager wrote nothing for longer than that", rest)
	}
	elsewhere.Namespace = "kube-system"
	sent.send(elsewhere)
	p.ticks(10)
	if rest := p.atRest("lab-a"); rest < 17*pollInterval {
		t.Errorf("at rest for %s: what a manager writes for itself, such as a lease, is no work", rest)
	}
}

func TestAStartedManagerLooksAnew(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since, prompt)
	sent.send(listing)
	p.note("lab-a")
	p.ticks(50)
	p.restart()
	if rest := p.atRest("lab-a"); rest != 0 {
		t.Errorf("at rest for %s although the manager was just started", rest)
	}
	p.ticks(50)
	sent.send(listing)
	p.ticks(1)
	if rest := p.atRest("lab-a"); rest > pollInterval {
		t.Errorf("at rest for %s, right after the manager's first look", rest)
	}
}

// A check waits with its failure for those that explain it, and for no longer than they are at work.
func TestWhoIsAtWork(t *testing.T) {
	p := newProgress()
	required := []string{"pods-run", "creates-deployment"}
	p.begin("follows-size")
	if p.anyAtWork(required) {
		t.Error("a check is waited for that nobody requires")
	}
	p.begin("pods-run")
	if !p.anyAtWork(required) {
		t.Error("a required check is at work, and nobody waits for it")
	}
	p.end("pods-run")
	if p.anyAtWork(required) {
		t.Error("a check that has ended is waited for")
	}
}
