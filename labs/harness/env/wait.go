package env

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	// pollInterval is how often to look at things that no watch announces, such as the proxy's record.
	pollInterval = 100 * time.Millisecond
	// GomegaPollInterval is how often Eventually and Consistently poll. Each poll is a request, which takes from the processors
	// that the API server and the manager share.
	GomegaPollInterval = 50 * time.Millisecond
	// readTimeout is how long one of these requests may take.
	readTimeout = 10 * time.Second
)

// Status is what the other checks, and the manager, mean for a check that waits.
type Status struct {
	// Gone is about a manager that cannot do its work, nil when it can.
	Gone *finding.Finding
	// Pointless is a failed check that makes the running one pointless, "" when there is none.
	Pointless string
	// Failed is the first other check that failed, "" when there is none: the verdict is clear.
	Failed string
}

// status says whether waiting still makes sense for the running check.
func status() Status {
	c := running()
	s := current.results.elsewhere(c.id, current.config.Opening[c.lab], c.long)
	s.Gone = current.shared.Gone
	if current.env != nil {
		s.Gone = cmp.Or(current.env.manager.gone(), s.Gone)
	}
	return s
}

// givenUp is why the running check need not go on, nil when it has to.
func givenUp(s Status) error {
	switch {
	case s.Gone != nil:
		return s.Gone
	case s.Pointless != "":
		return blocked(s.Pointless)
	}
	return nil
}

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(suite.CauseBlocked, "the check "+by+" holds", "%s", by)
}

// results are those of the checks of all processes.
type results struct {
	reader suite.Reader
	run    string

	mu     sync.Mutex
	failed []string // in order
}

func newResults(path, run string) *results {
	return &results{reader: suite.Reader{Path: path}, run: run}
}

// elsewhere is what the results of others mean for a check: it is pointless when the opening check of its lab has failed, and, if
// it takes long, when any has. What cannot be read is missing from the verdict, too, which says so.
func (r *results) elsewhere(check, opening string, long bool) (s Status) {
	if r == nil {
		return s // each check is judged in its own right
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	added, _ := r.reader.Next()
	for _, result := range added {
		if result.Run == r.run && result.State == suite.Failed && result.Load == 0 {
			r.failed = append(r.failed, result.Check)
		}
	}
	for _, id := range r.failed {
		s.Failed = cmp.Or(s.Failed, id)
		if id == opening && id != check || long && s.Pointless == "" {
			s.Pointless = id
		}
	}
	return s
}

// Wait decides when it makes no sense any more that a matcher is polled. Make one for each matcher.
type Wait struct {
	// ByKubernetes says that Kubernetes has to act, and not the manager. The wait ends when another check has failed, but
	// not before AtLeast is over.
	ByKubernetes bool
	AtLeast      time.Duration

	status   func() Status
	requests func(since int) []apiproxy.Request

	began, active time.Time          // when it was asked first, and the manager's last request for objects of a check
	next          int                // index of the first request that was not looked at
	sent          []apiproxy.Request // since it was asked before
	refusedInARow int
}

// NewWait begins a wait for something that the manager has to do.
func NewWait() *Wait { return &Wait{status: status, requests: requests} }

// Over says that waiting longer makes no sense. why is what explains that better than what the matcher saw, nil when
// nothing does.
func (w *Wait) Over() (over bool, why error) {
	if w.began.IsZero() {
		w.began, w.active, w.next = time.Now(), time.Now(), RequestCount()
	}
	w.sent = w.requests(w.next)
	for _, r := range w.sent {
		w.next = r.Index + 1
		if strings.HasPrefix(r.Namespace, checkNamespace) {
			w.active = time.Now()
		}
	}
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
	return time.Since(w.active) > limit, nil
}

// enoughRefusals is how often in a row the API server may refuse what is in a manager's writes before a wait ends.
// A right operator never sends such a thing; one that does goes on with the same.
const enoughRefusals = 5

// Refused says that the API server keeps refusing what is in the manager's writes to an object since the wait began: the next attempt
// will not be another one. A conflict is no such refusal: it is repeated, and then taken. Ask after Over.
func (w *Wait) Refused(of types.NamespacedName, resource string) bool {
	for _, r := range writesTo(w.sent, of) {
		switch {
		case r.Resource != resource:
		case r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity:
			w.refusedInARow++
		default:
			w.refusedInARow = 0
		}
	}
	w.sent = nil
	return w.refusedInARow >= enoughRefusals
}

// Final marks the error of a matcher: it ends the wait.
func Final(err error) error { return gomega.StopTrying("waiting ends").Wrap(err) }

// IsFinal says whether err was marked with [Final].
func IsFinal(err error) bool {
	signal, ok := errors.AsType[gomega.PollingSignalError](err)
	return ok && signal != nil
}

// Polled makes a function for Eventually and Consistently of one that reads something. They end early if the manager has exited,
// or if a check that this one requires has failed.
func Polled[T any](read func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (value T, err error) {
		defer func() { running().polled = err }()
		if why := givenUp(status()); why != nil {
			return value, Final(why)
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return read(ctx)
	}
}

// Sleep waits for a time. It ends early, with an error, when the check is given up.
func Sleep(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		if err := givenUp(status()); err != nil {
			return Final(err)
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left, pollInterval)):
		}
	}
}
