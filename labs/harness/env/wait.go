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

// The timeouts and intervals that checks share.
const (
	// GomegaPollInterval is how often Eventually and Consistently poll. Each poll is a request, which takes from the processors
	// that the API server and the manager share.
	GomegaPollInterval = 50 * time.Millisecond
	// readTimeout is how long one of these requests may take.
	readTimeout = 10 * time.Second
	// CheckLimit bounds one check from its first request to its last, whatever it waits for.
	CheckLimit = 115 * time.Second
	// EventuallyTimeout is how long Eventually polls without a timeout of its own. A right operator answers a change within
	// 50 ms. After a start it also has to fill its caches. The rest is for a busy machine. If the operator does nothing, the wait
	// ends after [idleLimit].
	EventuallyTimeout = 15 * time.Second
	// silenceTimeout is how long a manager may run before its first request. One that starts a controller sends a request
	// within a second. The limit is less than EventuallyTimeout, so that a check reports the silence.
	silenceTimeout = 10 * time.Second
	// cacheTimeout is the time from a manager's start until its caches are taken to be filled, if its log does not tell. It must
	// have sent a request by then.
	cacheTimeout = 2 * time.Second
	// idleLimit is how long a wait for the manager goes on while the manager sends no request about objects of a check. A right
	// operator acts within milliseconds of a change. Where the contract grants longer, the matcher is marked ByKubernetes.
	idleLimit = 4 * time.Second
	// shortIdleLimit replaces [idleLimit] when another check has failed: the verdict is certain.
	shortIdleLimit = 2 * time.Second
	// insideTimeout is how long a wait for a manager in the cluster goes on, at least, when another check has failed: what such a manager
	// asks the API server for is not seen.
	insideTimeout = 8 * time.Second
	// QuietPeriod is how long a manager is watched that has nothing to do, and how long Consistently polls without a timeout of its own.
	QuietPeriod = 3 * time.Second
	// RetryTimeout is within which time a manager has to repeat a write that failed, by the contract.
	RetryTimeout = 10 * time.Second
	// StopTimeout is how long a manager may take to end after SIGTERM before it is killed.
	StopTimeout = 5 * time.Second
	// diagnosticsTimeout is how long a failed check may look for explanations, and how long the deletion of leases may take. A
	// tenth of it is enough on a quiet machine.
	diagnosticsTimeout = 2 * time.Second
)

// gone is the finding about a manager that cannot do its work, nil when it can.
func gone() (f *finding.Finding) {
	if current.env != nil {
		f = current.env.manager.gone()
	}
	return cmp.Or(f, current.shared.Gone)
}

// otherFailures are the first other check that failed, and a failed check that makes this one pointless: the opening check of its
// lab, or any check if this one is [Long]. "" is none. If the results cannot be read, there are none; the verdict reports that.
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

// status says why the running check need not go on: nil means that it has to. failed is the first other check that failed, or "".
func status() (failed string, why error) {
	failed, decisive := running().otherFailures()
	if f := gone(); f != nil {
		return failed, f
	}
	if decisive != "" {
		return failed, blocked(decisive)
	}
	return failed, nil
}

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(suite.CauseBlocked, "the check "+by+" holds", "%s", by)
}

// Wait decides when polling a matcher no longer makes sense. Make one for each matcher.
type Wait struct {
	// ByKubernetes says that an idle manager does not end the wait: Kubernetes has to act, or the contract grants the manager
	// longer. Instead the wait ends when another check has failed, but not before AtLeast is over.
	ByKubernetes bool
	AtLeast      time.Duration

	status   func() (failed string, why error)
	requests func(since int) []apiproxy.Request

	began, active time.Time // the first call of Over, and the manager's last request about objects of a check
	first, seen   int       // how many requests there were when it began, and how many it has looked at
}

// NewWait begins a wait for something that the manager has to do.
func NewWait() *Wait {
	return &Wait{ByKubernetes: running().inside, AtLeast: insideTimeout, status: status, requests: requests}
}

// Over says whether waiting longer makes no sense. why explains that better than what the matcher saw; nil means that nothing does.
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
	failed, why := w.status()
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
		limit = shortIdleLimit
	}
	return time.Since(w.active) > limit, nil
}

// enoughRefusals is how often in a row the API server may refuse the content of a manager's writes before a wait ends.
// A right operator never sends such content; a wrong one sends the same again and again.
const enoughRefusals = 5

// Refused says whether the API server keeps refusing the content of the manager's writes to an object since the wait began. Then more
// attempts make no difference. A conflict does not count: the next attempt succeeds. Call Over first.
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

// Final marks an error that ends the wait.
func Final(err error) error { return gomega.StopTrying("waiting ends").Wrap(err) }

// IsFinal says whether err was marked with [Final].
func IsFinal(err error) bool {
	signal, ok := errors.AsType[gomega.PollingSignalError](err)
	return ok && signal != nil
}

// Polled turns a function that reads something into one for Eventually and Consistently. They end early if the manager has ended by
// itself, or if the failure of another check makes this one pointless.
func Polled[T any](read func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (value T, err error) {
		defer func() { running().polled = err }()
		if _, why := status(); why != nil {
			return value, Final(why)
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return read(ctx)
	}
}

// Sleep waits for d. It ends early, with an error, for the reasons that end [Polled].
func Sleep(ctx context.Context, d time.Duration) error {
	var why error
	_ = utilwait.PollUntilContextTimeout(ctx, GomegaPollInterval, d, true, func(context.Context) (bool, error) {
		_, why = status()
		return why != nil, nil
	})
	if why != nil {
		return Final(why)
	}
	return ctx.Err()
}
