// Package lending lends the clusters of a room: one to a learner, fresh, for one check.
//
// Who finds none free waits in a queue, first come, first served. A learner has one cluster at most and one place in the
// queue at most, so that nobody can take another one's turn by asking twice. A cluster comes back when it is given back,
// when nothing is heard of its borrower any more, or when its time is over; then it is deleted, and never lent again.
package lending

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

const (
	// Silence is for how long nothing may be heard of a borrower, or of somebody who waits: a laptop that changes its
	// Wi-Fi is back sooner.
	Silence = 30 * time.Second
	// Longest is for how long a cluster is lent at most. A run of the suite ends after ten minutes, whatever happens.
	Longest = 15 * time.Minute
	// reapPeriod is how often the server looks for those of whom nothing is heard.
	reapPeriod = time.Second
	// claimPeriod is how often a learner may claim another cluster, and claimsAtOnce how many times in a row: each costs the
	// room a cluster, also when it is given back at once. The fastest check takes longer.
	claimPeriod  = 4 * time.Second
	claimsAtOnce = 5
	// remembered is of how many claims of a learner it is known why they ended.
	remembered = 8
)

// Pool has fresh clusters. *pool.Pool is one.
type Pool interface {
	// Claim takes a cluster for good, and waits for one where none is there.
	Claim(ctx context.Context) (c *clusters.Cluster, pooled bool, err error)
	// Discard deletes it after its use, and does not wait for that.
	Discard(name string)
}

// Options say what is lent.
type Options struct {
	Pool Pool
	// Provider has made the clusters of the pool. What it tells and does beside that, it tells and does for borrowers.
	Provider clusters.Provider
	// AtOnce is how many clusters are lent at a time; those count that are being made ready for somebody.
	AtOnce int
	// Log, if it is not nil, is told in one line each what an instructor may want to know. No key is in it.
	Log func(line string)
}

// Server lends. Its methods may be called from several goroutines.
type Server struct {
	opts Options

	ctx    context.Context //nolint:containedctx // the life of the server, which outlives each call
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the reaper, and clusters that are being made ready

	mu      sync.Mutex
	out     map[int64]*loan    // lent, or being made ready, by learner
	queue   []*loan            // who waits, one of each learner, the first one first
	past    map[int64][]ending // by learner, the latest last
	claims  map[int64]*rate.Limiter
	closed  bool
	changed chan struct{} // closed, and replaced, whenever one of the above changes
}

// loan is what became of one claim.
type loan struct {
	learner store.Learner
	claim   string
	ctx     context.Context //nolint:containedctx // ends when the cluster is not wanted any more
	cancel  context.CancelFunc
	heard   time.Time    // when something was heard of the borrower
	polls   int          // how many questions of theirs wait for an answer
	lent    time.Time    // when they got the cluster
	given   *borrow.Loan // nil before
	name    string       // of the cluster, "" before
}

// ending is why a claim ended.
type ending struct{ claim, why string }

// Why a claim ended, for the one whose it is.
const (
	whyReturned = "it was given back"
	whyNewer    = "another check of yours took its place in the queue"
	whySilent   = "nothing was heard of its borrower for 30 s"
	whyLongest  = "it had been lent for 15 minutes, the longest time for one check"
	whyClosed   = "the room's server has ended"
	whyNotMade  = "the room could not make a cluster; the terminal of the instructor says why"
	whyUnknown  = "the room's server does not know of it any more, as after a restart"
)

// Open begins to lend. The caller has to Close the server, and the pool after it.
func Open(opts Options) *Server {
	if opts.Log == nil {
		opts.Log = func(string) {}
	}
	s := &Server{opts: opts, out: map[int64]*loan{}, past: map[int64][]ending{}, claims: map[int64]*rate.Limiter{}, changed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.tasks.Go(s.reap)
	return s
}

// Close takes everything back, and returns how many clusters were lent. Whoever waits is told.
func (s *Server) Close() (taken int) {
	s.mu.Lock()
	s.closed = true
	for _, l := range slices.Clone(s.queue) {
		s.end(l, whyClosed)
	}
	for _, l := range s.out {
		if l.given != nil {
			taken++
		}
		s.end(l, whyClosed)
	}
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
	return taken
}

// Claims names what the learner has claimed and has not given back.
func (s *Server) Claims(learner store.Learner) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	if l := s.out[learner.ID]; l != nil {
		names = append(names, l.claim)
	}
	for _, l := range s.queue {
		if l.learner.ID == learner.ID {
			names = append(names, l.claim)
		}
	}
	return names
}

// Claim asks for a cluster under a name that the learner chooses, and asked again, how far that has come: the answer
// to one claim is the same however often it is lost. It waits for something else than what the mark of an earlier
// answer stands for, [borrow.PollTime] at most. The error is an *[borrow.EndedError] when the claim
// will not get anything any more, and a *[TooManyError] when the learner has claimed many in a row.
func (s *Server) Claim(ctx context.Context, learner store.Learner, claim, seen string) (borrow.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.enter(learner, claim)
	if err != nil {
		return borrow.Answer{}, err
	}
	l.polls++
	defer func() { l.polls, l.heard = l.polls-1, time.Now() }()
	timeout := time.NewTimer(borrow.PollTime)
	defer timeout.Stop()
	for {
		answer, err := s.answer(l)
		if err != nil || answer.Mark != seen {
			return answer, err
		}
		if !s.await(ctx, timeout.C) {
			return answer, ctx.Err()
		}
	}
}

// enter finds a claim, or takes it into the queue. A learner who is there already keeps the place, for the new claim:
// the process that made the old one may be dead.
func (s *Server) enter(learner store.Learner, claim string) (*loan, error) {
	if l := s.find(learner, claim); l != nil {
		return l, nil
	}
	if err := s.ended(learner, claim); err != nil {
		return nil, err
	}
	if s.closed {
		return nil, &borrow.EndedError{Why: whyClosed}
	}
	if wait := s.wait(learner); wait > 0 {
		return nil, &TooManyError{Wait: wait}
	}
	l := &loan{learner: learner, claim: claim, heard: time.Now()}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	if i := slices.IndexFunc(s.queue, func(o *loan) bool { return o.learner.ID == learner.ID }); i >= 0 {
		s.queue[i].cancel()
		s.remember(s.queue[i], whyNewer)
		s.queue[i] = l
	} else {
		s.queue = append(s.queue, l)
	}
	s.grant()
	return l, nil
}

// TooManyError says that a learner has claimed many clusters in a row.
type TooManyError struct {
	// Wait is how long they have to wait for the next one.
	Wait time.Duration
}

func (e *TooManyError) Error() string { return "too many claims in a row" }

// wait is how long a learner has to wait before another claim, 0 if they need not.
func (s *Server) wait(learner store.Learner) time.Duration {
	limiter := s.claims[learner.ID]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Every(claimPeriod), claimsAtOnce)
		s.claims[learner.ID] = limiter
	}
	reservation := limiter.Reserve()
	delay := reservation.Delay()
	if delay > 0 {
		reservation.Cancel()
	}
	return delay
}

// find is the loan of a claim, nil when there is none.
func (s *Server) find(learner store.Learner, claim string) *loan {
	if l := s.out[learner.ID]; l != nil && l.claim == claim {
		return l
	}
	for _, l := range s.queue {
		if l.learner.ID == learner.ID && l.claim == claim {
			return l
		}
	}
	return nil
}

// ended is an *[borrow.EndedError] when the claim is known to have ended.
func (s *Server) ended(learner store.Learner, claim string) error {
	for _, e := range s.past[learner.ID] {
		if e.claim == claim {
			return &borrow.EndedError{Why: e.why}
		}
	}
	return nil
}

func (s *Server) remember(l *loan, why string) {
	all := append(s.past[l.learner.ID], ending{l.claim, why})
	s.past[l.learner.ID] = all[max(0, len(all)-remembered):]
}

// answer says how far a claim has come.
func (s *Server) answer(l *loan) (borrow.Answer, error) {
	if err := s.ended(l.learner, l.claim); err != nil {
		return borrow.Answer{}, err
	}
	a := borrow.Answer{Loan: l.given}
	if held := s.out[l.learner.ID]; held != l {
		a.Place, a.Held = slices.Index(s.queue, l)+1, held != nil
	}
	a.Mark = fmt.Sprintf("%d-%v-%v", a.Place, a.Held, a.Loan != nil)
	return a, nil
}

// grant begins to make clusters ready for those who are first, as long as some may be lent. Who still has one lets
// others go first. The caller holds the lock.
func (s *Server) grant() {
	for !s.closed && len(s.out) < s.opts.AtOnce {
		i := slices.IndexFunc(s.queue, func(l *loan) bool { return s.out[l.learner.ID] == nil })
		if i < 0 {
			break
		}
		l := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		s.out[l.learner.ID] = l
		s.tasks.Go(func() { s.prepare(l) })
	}
	s.notify()
}

// prepare gets somebody the cluster that was granted, unless they have gone.
func (s *Server) prepare(l *loan) {
	c, _, err := s.opts.Pool.Claim(l.ctx)
	var key []byte
	if err == nil {
		if key, err = os.ReadFile(c.Kubeconfig); err != nil {
			s.opts.Pool.Discard(c.Name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.out[l.learner.ID] != l:
		if err == nil {
			s.opts.Pool.Discard(c.Name)
		}
	case err != nil:
		s.opts.Log(fmt.Sprintf("no cluster for %s: %v", l.learner.Name, err))
		s.end(l, whyNotMade)
	default:
		l.name, l.given = c.Name, &borrow.Loan{Cluster: *c, Kubeconfig: key}
		l.given.Cluster.Kubeconfig = ""
		l.lent, l.heard = time.Now(), time.Now()
		s.notify()
	}
}

// end ends a claim, and takes back what it has. The caller holds the lock.
func (s *Server) end(l *loan, why string) {
	l.cancel()
	if s.out[l.learner.ID] == l {
		delete(s.out, l.learner.ID)
		if l.given != nil {
			s.opts.Pool.Discard(l.name)
		}
	}
	s.queue = slices.DeleteFunc(s.queue, func(o *loan) bool { return o == l })
	s.remember(l, why)
	s.grant()
}

// Return ends a claim: a cluster is taken back, and a place in the queue given up. What is not known has ended before.
func (s *Server) Return(learner store.Learner, claim string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.find(learner, claim); l != nil {
		s.end(l, whyReturned)
		return
	}
	if s.ended(learner, claim) == nil {
		// The claim itself may still be on its way.
		s.remember(&loan{learner: learner, claim: claim}, whyReturned)
	}
}

// Beat says that the borrower is still there. The error is an *[borrow.EndedError] when the cluster is not theirs any more.
func (s *Server) Beat(learner store.Learner, claim string) error {
	_, err := s.Lent(learner, claim)
	return err
}

// Lent is the name of the cluster that is lent under that claim; whoever asks is still there. The error is an
// *[borrow.EndedError] when there is none.
func (s *Server) Lent(learner store.Learner, claim string) (name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.find(learner, claim); l != nil && l.given != nil {
		l.heard = time.Now()
		return l.name, nil
	}
	if err := s.ended(learner, claim); err != nil {
		return "", err
	}
	return "", &borrow.EndedError{Why: whyUnknown}
}

// reap takes back what nobody will give back.
func (s *Server) reap() {
	tick := time.NewTicker(reapPeriod)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			s.takeBack(time.Now())
		}
	}
}

func (s *Server) takeBack(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.out {
		if why := l.overdue(now); why != "" {
			if l.given != nil {
				s.opts.Log(fmt.Sprintf("took the cluster of %s back: %s", l.learner.Name, why))
			}
			s.end(l, why)
		}
	}
	for _, l := range slices.Clone(s.queue) {
		if why := l.overdue(now); why != "" {
			s.end(l, why)
		}
	}
}

// overdue is why a claim has to end, "" when it may go on.
func (l *loan) overdue(now time.Time) string {
	switch {
	case l.polls == 0 && now.Sub(l.heard) > Silence:
		return whySilent
	case l.given != nil && now.Sub(l.lent) > Longest:
		return whyLongest
	}
	return ""
}

// notify wakes all who await a change. The caller holds the lock.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns after the next change, and gives the lock away meanwhile. It says whether there was one.
func (s *Server) await(ctx context.Context, timeout <-chan time.Time) bool {
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return true
	case <-timeout:
	case <-ctx.Done():
	}
	return false
}
