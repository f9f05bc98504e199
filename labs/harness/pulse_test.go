package harness

import (
	"testing"
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

// ticks lets n punctual ticks pass.
func (p *pulse) ticks(n int) {
	for range n {
		p.pass(pollInterval)
	}
}

func TestNobodyIsAtRestBeforeTheManagerLooked(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since)
	p.note("lab-a")
	p.ticks(100)
	if rest := p.atRest("lab-a"); rest != 0 {
		t.Errorf("at rest for %s although the manager has not looked for Memcacheds", rest)
	}
	sent.send(listing)
	p.ticks(10)
	if rest := p.atRest("lab-a"); rest < 9*pollInterval || rest > 10*pollInterval {
		t.Errorf("at rest for %s, ten ticks after the manager's first look", rest)
	}
}

func TestRestBeginsWithTheLastActivity(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since)
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
	p.note("lab-b")
	p.ticks(5)
	if rest := p.atRest("lab-a"); rest != 5*pollInterval {
		t.Errorf("at rest for %s, five ticks after the last activity", rest)
	}
}

func TestABusyMachineIsNotRest(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since)
	sent.send(listing)
	p.ticks(1)
	p.note("lab-a")
	p.pass(time.Minute) // one tick that came a minute late
	if rest := p.atRest("lab-a"); rest > pollInterval {
		t.Errorf("at rest for %s, although nobody was served for a minute", rest)
	}
}

func TestAStartedManagerLooksAnew(t *testing.T) {
	var sent traffic
	p := newPulse(sent.since)
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

func TestAmongNamesTheFirstFailedCheck(t *testing.T) {
	var f failedChecks
	if by := f.among(); by != "" {
		t.Errorf("%q failed, and nothing was told", by)
	}
	f.add("follows-size")
	f.add("creates-deployment")
	for want, wanted := range map[string][]string{
		"follows-size":       nil,
		"creates-deployment": {"pods-run", "creates-deployment"},
		"":                   {"pods-run"},
	} {
		if by := f.among(wanted...); by != want {
			t.Errorf("among(%q) is %q, want %q", wanted, by, want)
		}
	}
}
