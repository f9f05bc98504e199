package env

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	// pollInterval is how often to look at things that no watch announces, such as the proxy's record.
	pollInterval = 100 * time.Millisecond
	// GomegaPollInterval is how often Eventually and Consistently poll. Most of these polls send no request: see [DeploymentOf].
	GomegaPollInterval = 20 * time.Millisecond
	// refreshInterval is how often an object is read again although no watch has announced a change. Each request takes
	// from the processors that the API server and the manager share.
	refreshInterval = 300 * time.Millisecond
	// readTimeout is how long one of these requests may take.
	readTimeout = 10 * time.Second
	// eventsInterval is how often events are read, which no watch announces.
	eventsInterval = pollInterval
)

// Wait decides when it makes no sense any more that a matcher is polled. Make one for each matcher.
type Wait struct {
	// ByKubernetes says that Kubernetes has to act, and not the manager. The wait ends when another check has failed, but
	// not before AtLeast is over.
	ByKubernetes bool
	AtLeast      time.Duration

	began         time.Time
	status        func() Status
	requests      func(since int) []apiproxy.Request
	next          int // index of the first request that was not looked at; -1 before the first look
	refusedInARow int
}

// NewWait begins a wait for something that the manager has to do.
func NewWait() *Wait {
	return &Wait{began: time.Now(), next: -1, status: status, requests: requests}
}

// Over says that waiting longer makes no sense. why is what explains that better than what the matcher saw, nil when
// nothing does.
func (w *Wait) Over() (over bool, why error) {
	s, waited := w.status(), time.Since(w.began)
	why = givenUp(s)
	switch {
	case why != nil:
		return true, why
	case w.ByKubernetes && s.Failed != "" && waited >= w.AtLeast:
		return true, blocked(s.Failed)
	case w.ByKubernetes:
		return false, nil
	}
	limit := idleLimit
	if s.Failed != "" {
		limit = shortIdleLimit // the verdict is clear
	}
	return min(s.Idle, waited) > limit, nil // idle time before this wait does not count
}

// enoughRefusals is how often in a row the API server may refuse what is in a manager's writes before a wait ends.
// A right operator never sends such a thing; one that does goes on with the same.
const enoughRefusals = 5

// Refused says that the API server keeps refusing what the manager writes to an object since the wait began: the next
// attempt will not be another one.
func (w *Wait) Refused(of types.NamespacedName, resource string) bool {
	if w.next < 0 {
		w.next = RequestCount()
		return false
	}
	requests := w.requests(w.next)
	if n := len(requests); n > 0 {
		w.next = requests[n-1].Index + 1
	}
	writes := toResource(writesTo(requests, of), resource)
	if n := refusedLast(writes); n < len(writes) {
		w.refusedInARow = n
	} else {
		w.refusedInARow += n
	}
	return w.refusedInARow >= enoughRefusals
}

// toResource are those of the requests that are about a resource, whichever of its subresources they went to.
func toResource(requests []apiproxy.Request, resource string) []apiproxy.Request {
	group := map[string]string{Deployments: "apps", Memcacheds: suite.Group}[resource]
	return slices.DeleteFunc(slices.Clone(requests), func(r apiproxy.Request) bool {
		return r.Group != group || r.Resource != resource
	})
}

// refusedLast counts the requests at the end that the API server refused for what is in them.
func refusedLast(requests []apiproxy.Request) int {
	n := 0
	for _, r := range slices.Backward(requests) {
		if !invalid(r) {
			break
		}
		n++
	}
	return n
}

// invalid says whether the API server refused a request for what is in it. A conflict is no such thing: it is repeated, and
// then taken.
func invalid(r apiproxy.Request) bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity
}

// final is an error that waiting longer does not fix.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final marks the error of a matcher: it ends the wait.
func Final(err error) error { return final{err} }

// IsFinal says whether err was marked with [Final].
func IsFinal(err error) bool {
	_, ok := errors.AsType[final](err)
	return ok
}

// Polled makes a function for Eventually and Consistently of one that reads something in a namespace. It reads anew when a
// Memcached or a Deployment of the namespace has changed, and three times a second; otherwise it returns what it has read
// last. Eventually and Consistently end early if the manager has exited, or if a check that this one requires has failed.
func Polled[T any](namespace string, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	return polled(namespace, refreshInterval, read)
}

// polled is [Polled] with an interval of its own.
func polled[T any](namespace string, interval time.Duration, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	var last T
	var asked time.Time
	var seen int
	return func(ctx context.Context) (T, error) {
		if err := givenUp(status()); err != nil {
			return last, gomega.StopTrying("the check is given up").Wrap(err)
		}
		now := changesIn(namespace) // before the object is read: what changes meanwhile is news
		if !asked.IsZero() && now == seen && time.Since(asked) < interval {
			return last, nil
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		value, err := read(ctx)
		if err != nil {
			return last, err
		}
		last, asked, seen = value, time.Now(), now
		return last, nil
	}
}

func changesIn(namespace string) int {
	if current.env == nil {
		return 0
	}
	return current.env.activity.changes(namespace)
}

// Sleep waits for a time. It ends early, with an error, when the check is given up.
func Sleep(ctx context.Context, d time.Duration) error {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if err := givenUp(status()); err != nil {
			return gomega.StopTrying("the check is given up").Wrap(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-tick.C:
		}
	}
}
