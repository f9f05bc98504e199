package env

import (
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
	r.Index, r.Time = len(*t), time.Now()
	*t = append(*t, r)
}

var (
	listing = apiproxy.Request{Verb: "list", Group: suite.Group, Resource: "memcacheds"}
	writing = apiproxy.Request{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "lab-a"}
)

func TestIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent traffic
		a := newActivityMonitor(sent.since)
		expect := func(want time.Duration, when string) {
			t.Helper()
			if idle := a.idle([]string{"lab-a"}); idle != want {
				t.Errorf("%s: idle for %s, want %s", when, idle, want)
			}
			time.Sleep(time.Second)
		}
		sent.send(writing)
		expect(0, "before the manager has asked for Memcacheds")
		sent.send(listing)
		expect(0, "right after it")
		expect(time.Second, "a second later")
		sent.send(writing)
		expect(0, "after a request")
		a.note("lab-a")
		expect(0, "after a change of an object")
		a.note("lab-b")
		expect(time.Second, "after one elsewhere")
		a.restart()
		expect(0, "after a start of the manager")
		sent.send(listing)
		expect(0, "after its first look")
		expect(time.Second, "a second after its first look")
		if idle := a.idle([]string{"lab-c"}); idle != 0 {
			t.Errorf("idle for %s where nothing has happened", idle)
		}
	})
}
