// Package faults disturbs the manager of the running check: the API server refuses its writes, somebody else changes an object
// right before the manager writes it, or the manager is killed. A fault ends with the check at the latest.
package faults

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
)

// firstTry is how long a manager has for its first write, which is refused. A right one needs milliseconds.
const firstTry = 2 * time.Second

// RefuseWrites has the API server refuse writes of a resource, such as "deployments", while act runs. After act it goes on until a
// write in the namespace is refused, for two seconds at most. More refusals would double the manager's pause each time, so that even
// a right manager would be too late.
func RefuseWrites(ctx context.Context, namespace, resource string, act func() error) error {
	proxy, err := env.Proxy()
	if err != nil {
		return err
	}
	since := proxy.Count()
	proxy.Disturb(apiproxy.Disturbance{Outage: resource})
	defer proxy.Disturb(apiproxy.Disturbance{})
	if err := act(); err != nil {
		return err
	}
	const poll = 10 * time.Millisecond
	for end := time.Now().Add(firstTry); !refusedIn(namespace, proxy.Since(since)) && time.Now().Before(end); {
		if err := env.Sleep(ctx, poll); err != nil {
			return err
		}
	}
	return nil
}

// refusedIn says whether the proxy refused a write in the namespace.
func refusedIn(namespace string, requests []apiproxy.Request) bool {
	return slices.ContainsFunc(requests, func(r apiproxy.Request) bool { return r.Disturbed && r.Mutating() && r.Namespace == namespace })
}

// BeforeWrite calls act once, right before the manager's first write of a Memcached. The API server may answer that write with a
// conflict. failed returns the error of act, or an error if there was no such write.
func BeforeWrite(m env.Memcached, act func(context.Context) error) (failed func() error, _ error) {
	var once sync.Once // all writes wait until act has returned
	err := errors.New("the manager has not written the Memcached")
	before := func(ctx context.Context, r apiproxy.Request) (provoked bool) {
		if r.Mutating() && r.Resource == env.Memcacheds && r.Subresource == "" && r.Namespace == m.Namespace && r.Name == m.Name {
			once.Do(func() { err = act(ctx); provoked = err == nil })
		}
		return provoked
	}
	failed = func() error { once.Do(func() {}); return err } // it waits for an act that runs, and prevents a later one
	return failed, disturb(apiproxy.Disturbance{Before: before})
}

// KillAfter kills the manager once, when the API server has answered a request for which moment is true, before the manager gets the
// answer. Start the manager again when killed is closed.
func KillAfter(moment func(apiproxy.Request) bool) (killed <-chan struct{}, _ error) {
	ended, manager := make(chan struct{}), env.Manager()
	kill := sync.OnceFunc(func() {
		manager.Kill()
		close(ended)
	})
	return ended, disturb(apiproxy.Disturbance{After: func(r apiproxy.Request) {
		if moment(r) {
			kill()
		}
	}})
}

// disturb disturbs the manager's requests until the check ends.
func disturb(d apiproxy.Disturbance) error {
	proxy, err := env.Proxy()
	if err != nil {
		return err
	}
	proxy.Disturb(d)
	ginkgo.DeferCleanup(func() { proxy.Disturb(apiproxy.Disturbance{}) })
	return nil
}
