package env

import (
	"context"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
)

// activityMonitor knows in which namespaces something still happens: requests of the manager, and changes of the objects
// that it works with. A wait that sees neither for [idleLimit] ends, because more waiting would show the same.
type activityMonitor struct {
	requests func(since int) []apiproxy.Request

	mu       sync.Mutex
	read     int                  // requests that were looked at
	last     map[string]time.Time // the last activity, by namespace
	news     map[string]int       // how many changes of objects were seen, by namespace
	listened time.Time            // the manager's first request for Memcacheds; zero before it
}

func newActivityMonitor(requests func(since int) []apiproxy.Request) *activityMonitor {
	return &activityMonitor{requests: requests, last: map[string]time.Time{}, news: map[string]int{}}
}

// follow notes the changes of the objects of all checks until ctx ends. Events are left out: Kubernetes repeats some of
// its own, such as about Pods that a quota refuses, for as long as somebody waits.
func (a *activityMonitor) follow(ctx context.Context, api client.WithWatch) {
	for _, list := range []client.ObjectList{Memcached{}.list(), &appsv1.DeploymentList{}} {
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			w, err := api.Watch(ctx, list)
			if err != nil {
				return // the kind may not exist yet
			}
			for event := range w.ResultChan() {
				if obj, ok := event.Object.(client.Object); ok {
					a.note(obj.GetNamespace())
				}
			}
		}, pollInterval)
	}
}

func (a *activityMonitor) readRequests() {
	for _, r := range a.requests(a.read) {
		a.read = r.Index + 1
		if strings.HasPrefix(r.Namespace, checkNamespace) && r.Time.After(a.last[r.Namespace]) {
			a.last[r.Namespace] = r.Time
		}
		if a.listened.IsZero() && r.Group == suite.Group && (r.Verb == "list" || r.Verb == "watch") {
			a.listened = r.Time
		}
	}
}

func (a *activityMonitor) note(namespace string) {
	if !strings.HasPrefix(namespace, checkNamespace) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[namespace] = time.Now()
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
	a.listened = time.Time{}
}

// listens says whether the manager has asked for Memcacheds.
func (a *activityMonitor) listens() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readRequests()
	return !a.listened.IsZero()
}

// idle says for how long nothing has happened in any of the namespaces: 0 before the manager has asked for
// Memcacheds at all, and before anything has happened there.
func (a *activityMonitor) idle(namespaces []string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readRequests()
	var last time.Time
	for _, namespace := range namespaces {
		if at := a.last[namespace]; at.After(last) {
			last = at
		}
	}
	if a.listened.IsZero() || last.IsZero() {
		return 0
	}
	if a.listened.After(last) {
		last = a.listened
	}
	return time.Since(last)
}
