package env

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// How long a check waits for the world before it says no: the waits that checks share.
const (
	// GomegaPollInterval is how often Eventually and Consistently poll. Each poll is a request, which takes from the processors
	// that the API server and the manager share.
	GomegaPollInterval = 50 * time.Millisecond
	// readTimeout is how long one of these requests may take.
	readTimeout = 10 * time.Second
	// CheckLimit bounds one check from its first request to its last, whatever it waits for.
	CheckLimit = 115 * time.Second
	// EventuallyTimeout is how long Eventually polls without a timeout of its own. A right operator answers a change within
	// 50 ms; one that was just started may have to build its caches, and the rest is for a busy machine. One that does
	// nothing is not waited for: see [idleLimit].
	EventuallyTimeout = 15 * time.Second
	// silenceTimeout is how long a manager may run before its first request. One that starts a controller sends it
	// within a second. It is less than EventuallyTimeout, so that a check reports the silence.
	silenceTimeout = 10 * time.Second
	// cacheTimeout is how long a manager that has asked the API server for something may take from its start until its caches
	// are filled, where its log does not tell.
	cacheTimeout = 2 * time.Second
	// idleLimit is how long a wait for the manager goes on while it sends no request about objects of a check. A right operator acts
	// within milliseconds of a change. Where the contract grants it longer, the matcher waits with ByKubernetes.
	idleLimit = 4 * time.Second
	// shortIdleLimit is [idleLimit] once another check has failed, so that the verdict is clear.
	shortIdleLimit = 2 * time.Second
	// QuietPeriod is how long a manager at rest is listened to, and how long Consistently polls without a timeout of its own.
	QuietPeriod = 3 * time.Second
	// RetryTimeout is the contract's limit for a write that failed to be tried again.
	RetryTimeout = 10 * time.Second
	// StopTimeout is how long a manager may take to end after SIGTERM before it is killed.
	StopTimeout = 5 * time.Second
	// diagnosticsTimeout is how long a failed check may look for what explains it, or leases may take to be deleted. A tenth of it
	// is enough on a quiet machine.
	diagnosticsTimeout = 2 * time.Second
)

// gone is the finding about a manager that cannot do its work, nil when it can.
func gone() (f *finding.Finding) {
	if current.env != nil {
		f = current.env.manager.gone()
	}
	return cmp.Or(f, current.shared.Gone)
}

// otherFailures are the first other check that failed, and the one that makes this check pointless: the opening check of its lab, or
// any if it takes long. "" is none. What cannot be read is missing from the verdict, too, which says so.
func (c *check) otherFailures() (failed, decisive string) {
	if current.config.Unblocked {
		return "", ""
	}
	results, _ := suite.ReadResults(filepath.Join(current.config.Artifacts, suite.ResultsFile))
	for _, r := range results {
		if r.Run != current.shared.Run || r.State != suite.Failed || r.Load > 0 {
			continue
		}
		failed = cmp.Or(failed, r.Check)
		if r.Check == current.config.Opening[c.lab] && r.Check != c.id || c.long && decisive == "" {
			decisive = r.Check
		}
	}
	return failed, decisive
}

// status is why the running check need not go on, nil when it has to, and the first other check that failed: "" when there is none.
func status() (why error, failed string) {
	failed, decisive := running().otherFailures()
	if f := gone(); f != nil {
		return f, failed
	}
	if decisive != "" {
		return blocked(decisive), failed
	}
	return nil, failed
}

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(suite.CauseBlocked, "the check "+by+" holds", "%s", by)
}

// Wait decides when it makes no sense any more that a matcher is polled. Make one for each matcher.
type Wait struct {
	// ByKubernetes says that Kubernetes has to act, and not the manager. The wait ends when another check has failed, but
	// not before AtLeast is over.
	ByKubernetes bool
	AtLeast      time.Duration

	status   func() (why error, failed string)
	requests func(since int) []apiproxy.Request

	began, active time.Time // when it was asked first, and the manager's last request for objects of a check
	first, seen   int       // requests that came before it began, and those that it has looked at
}

// NewWait begins a wait for something that the manager has to do.
func NewWait() *Wait { return &Wait{status: status, requests: requests} }

// Over says that waiting longer makes no sense. why is what explains that better than what the matcher saw, nil when
// nothing does.
func (w *Wait) Over() (over bool, why error) {
	if w.began.IsZero() {
		w.began, w.active, w.first, w.seen = time.Now(), time.Now(), RequestCount(), RequestCount()
	}
	for _, r := range w.requests(w.seen) {
		w.seen++
		if strings.HasPrefix(r.Namespace, checkNamespace) {
			w.active = time.Now()
		}
	}
	why, failed := w.status()
	switch {
	case why != nil:
		return true, why
	case w.ByKubernetes && failed != "" && time.Since(w.began) >= w.AtLeast:
		return true, blocked(failed)
	case w.ByKubernetes:
		return false, nil
	}
	limit := idleLimit
	if failed != "" {
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
	inARow := 0
	for _, r := range writesTo(w.requests(w.first), of) {
		switch {
		case r.Resource != resource:
		case r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity:
			inARow++
		default:
			inARow = 0
		}
	}
	return inARow >= enoughRefusals
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
		if why, _ := status(); why != nil {
			return value, Final(why)
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return read(ctx)
	}
}

// Sleep waits for a time. It ends early, with an error, when the check is given up.
func Sleep(ctx context.Context, d time.Duration) error {
	var why error
	_ = utilwait.PollUntilContextTimeout(ctx, GomegaPollInterval, d, true, func(context.Context) (bool, error) {
		why, _ = status()
		return why != nil, nil
	})
	if why != nil {
		return Final(why)
	}
	return ctx.Err()
}
