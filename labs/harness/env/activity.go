package env

import (
	"context"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
)

// activityMonitor knows in which namespaces something still happens: requests of the manager, and changes of the objects
// that it works with. A wait that sees neither for [idleLimit] ends, because more waiting would show the same.
//
// It has a clock of its own, which goes only while this process and the API server are served in time: on a machine that
// is too busy for us it stands still.
type activityMonitor struct {
	requests func(since int) []apiproxy.Request
	answered func(ctx context.Context) error // asks the API server for something

	mu     sync.Mutex
	clock  time.Duration
	read   int                      // requests that were looked at
	last   map[string]time.Duration // the clock at the last activity, by namespace
	news   map[string]int           // how many changes of objects were seen, by namespace
	listen time.Duration            // the clock at the manager's first request for Memcacheds; negative before it
}

func newActivityMonitor(requests func(since int) []apiproxy.Request, answered func(ctx context.Context) error) *activityMonitor {
	return &activityMonitor{requests: requests, answered: answered, last: map[string]time.Duration{}, news: map[string]int{}, listen: -1}
}

// run keeps the clock and follows the objects of all checks until ctx ends. Events are left out: Kubernetes repeats some of
// its own, such as about Pods that a quota refuses, for as long as somebody waits.
func (a *activityMonitor) run(ctx context.Context) {
	for _, list := range []client.ObjectList{Memcached{}.list(), &appsv1.DeploymentList{}} {
		go a.follow(ctx, list)
	}
	a.keepTime(ctx)
}

// keepTime moves the clock until ctx ends.
func (a *activityMonitor) keepTime(ctx context.Context) {
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
			if err = a.answered(ctx); err == nil && time.Since(asked) < atOnce {
				prompt = asked
			}
		}
		elapsed := time.Since(before)
		before = before.Add(elapsed)
		if err == nil {
			a.pass(elapsed)
		}
	}
}

const (
	// A prompt answer of the API server takes atOnce at most. After one, the monitor asks again when trusted is over: each
	// process of a run asks.
	atOnce  = pollInterval / 2
	trusted = 3 * pollInterval
)

// pass moves the clock by what a punctual tick takes, however late this one was.
func (a *activityMonitor) pass(elapsed time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readRequests()
	a.clock += min(elapsed, pollInterval)
}

func (a *activityMonitor) readRequests() {
	for _, r := range a.requests(a.read) {
		a.read = r.Index + 1
		if _, known := a.last[r.Namespace]; known || strings.HasPrefix(r.Namespace, checkNamespace) {
			a.last[r.Namespace] = a.clock
		}
		if a.listen < 0 && r.Group == suite.Group && (r.Verb == "list" || r.Verb == "watch") {
			a.listen = a.clock
		}
	}
}

// follow notes every change of the objects, and begins again when the API server ends the watch.
func (a *activityMonitor) follow(ctx context.Context, list client.ObjectList) {
	for ctx.Err() == nil {
		w, err := current.admin.Watch(ctx, list)
		if err != nil {
			select { // the kind may not exist yet
			case <-ctx.Done():
			case <-time.After(pollInterval):
			}
			continue
		}
		for event := range w.ResultChan() {
			if obj, ok := event.Object.(client.Object); ok {
				a.note(obj.GetNamespace())
			}
		}
	}
}

func (a *activityMonitor) note(namespace string) {
	if !strings.HasPrefix(namespace, checkNamespace) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[namespace] = a.clock
	a.news[namespace]++
}

// changes is how many changes of Memcacheds and Deployments were seen in the namespace so far.
func (a *activityMonitor) changes(namespace string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.news[namespace]
}

// restart forgets that the manager listens: another process of it has to begin anew.
func (a *activityMonitor) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readRequests()
	a.listen = -1
}

// listens says whether the manager has asked for Memcacheds.
func (a *activityMonitor) listens() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readRequests()
	return a.listen >= 0
}

// idle says for how long nothing has happened in any of the namespaces: 0 before the manager has asked for
// Memcacheds at all, and before anything has happened there.
func (a *activityMonitor) idle(namespaces []string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readRequests()
	last, known := time.Duration(0), false
	for _, namespace := range namespaces {
		if at, ok := a.last[namespace]; ok {
			last, known = max(last, at), true
		}
	}
	if a.listen < 0 || !known {
		return 0
	}
	return a.clock - max(last, a.listen)
}
