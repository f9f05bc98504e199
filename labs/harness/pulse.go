package harness

import (
	"context"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/recorder"
)

// pulse knows, beside the manager, in which namespaces something still happens: requests of the
// manager, and changes of the objects that it works with. A wait that sees neither for [RestLimit] ends,
// because more waiting would show the same.
//
// It counts in calm time, which only passes while this process itself and the API server are served in time, and while
// the manager writes for nobody. On a machine that is too busy for us it stands still, and so it does while the manager has
// work elsewhere: one worker serves one object after the other, and controller-runtime's queue puts those last
// that were there when the manager started.
type pulse struct {
	requests func(since int) []recorder.Request
	answered func(ctx context.Context) error // asks the API server for something

	mu     sync.Mutex
	calm   time.Duration
	idle   time.Duration            // since the manager's last write for any check
	read   int                      // requests that were looked at
	last   map[string]time.Duration // calm time of the last activity, by namespace
	listen time.Duration            // calm time of the manager's first look at Memcacheds; negative before it
}

func newPulse(requests func(since int) []recorder.Request, answered func(ctx context.Context) error) *pulse {
	return &pulse{requests: requests, answered: answered, last: map[string]time.Duration{}, listen: -1, idle: breath}
}

// beat keeps the time and follows the objects in namespace, with "" in all, until ctx ends. Events are left out:
// Kubernetes repeats some of its own, such as about Pods that a quota refuses, for as long as one waits.
func (p *pulse) beat(ctx context.Context, namespace string) {
	for _, list := range []client.ObjectList{Memcached{}.list(), &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}} {
		go p.follow(ctx, list, client.InNamespace(namespace))
	}
	p.keepTime(ctx)
}

// keepTime counts calm time until ctx ends.
func (p *pulse) keepTime(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	before := time.Now()
	var prompt time.Time // when the API server last answered at once
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if ctx.Err() != nil {
			return // both were due
		}
		var err error
		if asked := time.Now(); asked.Sub(prompt) >= trusted {
			if err = p.answered(ctx); err == nil && time.Since(asked) < atOnce {
				prompt = asked
			}
		}
		elapsed := time.Since(before)
		before = before.Add(elapsed)
		if err == nil {
			p.pass(elapsed)
		}
	}
}

const (
	// atOnce is how long an API server takes at most that serves everybody in time, and trusted how long one that does is
	// not asked again: with a pulse for every check that is [Apart], asking takes its time, too.
	atOnce  = pollInterval / 2
	trusted = 3 * pollInterval
)

// breath is how long after a write a manager still counts as writing. What follows a write, such as its own news
// of it, takes a tenth of that.
const breath = 500 * time.Millisecond

// pass adds to the calm time what a punctual tick takes, however late this one was, unless the manager is writing.
func (p *pulse) pass(elapsed time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tick := min(elapsed, pollInterval)
	p.idle += tick
	p.readRequests()
	if p.idle > breath {
		p.calm += tick
	}
}

func (p *pulse) readRequests() {
	requests := p.requests(p.read)
	for _, r := range requests {
		p.read = r.Index + 1
		if r.Namespace != "" {
			p.last[r.Namespace] = p.calm
		}
		if r.Mutating() && strings.HasPrefix(r.Namespace, checkNamespace) {
			p.idle = 0
		}
		if p.listen < 0 && r.Group == Group && (r.Verb == "list" || r.Verb == "watch") {
			p.listen = p.calm
		}
	}
}

// follow notes every change of the objects, and begins again when the API server ends the watch.
func (p *pulse) follow(ctx context.Context, list client.ObjectList, in client.InNamespace) {
	for ctx.Err() == nil {
		w, err := suite.admin.Watch(ctx, list, in)
		if err != nil {
			p.rest(ctx)
			continue
		}
		for event := range w.ResultChan() {
			if obj, ok := event.Object.(client.Object); ok {
				p.note(obj.GetNamespace())
			}
		}
	}
}

// rest waits before the next attempt: the kind may not exist yet.
func (p *pulse) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pollInterval):
	}
}

func (p *pulse) note(namespace string) {
	if !strings.HasPrefix(namespace, checkNamespace) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[namespace] = p.calm
}

// restart forgets that the manager listens: another process of it has to begin anew.
func (p *pulse) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readRequests()
	p.listen = -1
}

// listens says whether the manager has looked for Memcacheds.
func (p *pulse) listens() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readRequests()
	return p.listen >= 0
}

// atRest says for how long nothing has happened in the namespace: 0 before the manager has looked for
// Memcacheds at all, and before anything has happened there.
func (p *pulse) atRest(namespace string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readRequests()
	last, known := p.last[namespace]
	if p.listen < 0 || !known {
		return 0
	}
	return p.calm - max(last, p.listen)
}
