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

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/borrow"
)

const (
	// Silence is for how long nothing may be heard of a borrower, or of somebody who waits: a laptop that changes its
	// Wi-Fi is back sooner.
	Silence = 30 * time.Second
	// Longest is for how long a cluster is lent at most. A run of the suite ends after ten minutes, whatever happens.
	Longest = 15 * time.Minute
	// patrolPeriod is how often the desk looks for those of whom nothing is heard.
	patrolPeriod = time.Second
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

// Desk lends. Its methods may be called from several goroutines.
type Desk struct {
	opts Options

	ctx    context.Context //nolint:containedctx // the life of the desk, which outlives each call
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the patrol, and clusters that are being made ready

	mu      sync.Mutex
	out     map[int64]*loan    // lent, or being made ready, by learner
	queue   []*loan            // who waits, one of each learner, the first one first
	past    map[int64][]ending // by learner, the latest last
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

// Open begins to lend. The caller has to Close the desk, and the pool after it.
func Open(opts Options) *Desk {
	if opts.Log == nil {
		opts.Log = func(string) {}
	}
	d := &Desk{opts: opts, out: map[int64]*loan{}, past: map[int64][]ending{}, changed: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.tasks.Go(d.patrol)
	return d
}

// Close takes everything back, and returns how many clusters were lent. Whoever waits is told.
func (d *Desk) Close() (taken int) {
	d.mu.Lock()
	d.closed = true
	for _, l := range slices.Clone(d.queue) {
		d.end(l, whyClosed)
	}
	for _, l := range d.out {
		if l.given != nil {
			taken++
		}
		d.end(l, whyClosed)
	}
	d.mu.Unlock()
	d.cancel()
	d.tasks.Wait()
	return taken
}

// Claims names what the learner has claimed and has not given back.
func (d *Desk) Claims(learner store.Learner) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	if l := d.out[learner.ID]; l != nil {
		names = append(names, l.claim)
	}
	for _, l := range d.queue {
		if l.learner.ID == learner.ID {
			names = append(names, l.claim)
		}
	}
	return names
}

// Claim asks for a cluster under a name that the learner chooses, and asked again, how far that has come: the answer
// to one claim is the same however often it is lost. It waits for something else than what the mark of an earlier
// answer stands for, [borrow.PollTime] at most. The error is an *[borrow.EndedError] when the claim will not get anything any more.
func (d *Desk) Claim(ctx context.Context, learner store.Learner, claim, seen string) (borrow.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, err := d.enter(learner, claim)
	if err != nil {
		return borrow.Answer{}, err
	}
	l.polls++
	defer func() { l.polls, l.heard = l.polls-1, time.Now() }()
	patience := time.NewTimer(borrow.PollTime)
	defer patience.Stop()
	for {
		answer, err := d.answer(l)
		if err != nil || answer.Mark != seen {
			return answer, err
		}
		if !d.await(ctx, patience.C) {
			return answer, ctx.Err()
		}
	}
}

// enter finds a claim, or takes it into the queue. A learner who is there already keeps the place, for the new claim:
// the process that made the old one may be dead.
func (d *Desk) enter(learner store.Learner, claim string) (*loan, error) {
	if l := d.find(learner, claim); l != nil {
		return l, nil
	}
	if err := d.ended(learner, claim); err != nil {
		return nil, err
	}
	if d.closed {
		return nil, &borrow.EndedError{Why: whyClosed}
	}
	l := &loan{learner: learner, claim: claim, heard: time.Now()}
	l.ctx, l.cancel = context.WithCancel(d.ctx)
	if i := slices.IndexFunc(d.queue, func(o *loan) bool { return o.learner.ID == learner.ID }); i >= 0 {
		d.queue[i].cancel()
		d.remember(d.queue[i], whyNewer)
		d.queue[i] = l
	} else {
		d.queue = append(d.queue, l)
	}
	d.grant()
	return l, nil
}

// find is the loan of a claim, nil when there is none.
func (d *Desk) find(learner store.Learner, claim string) *loan {
	if l := d.out[learner.ID]; l != nil && l.claim == claim {
		return l
	}
	for _, l := range d.queue {
		if l.learner.ID == learner.ID && l.claim == claim {
			return l
		}
	}
	return nil
}

// ended is an *[borrow.EndedError] when the claim is known to have ended.
func (d *Desk) ended(learner store.Learner, claim string) error {
	for _, e := range d.past[learner.ID] {
		if e.claim == claim {
			return &borrow.EndedError{Why: e.why}
		}
	}
	return nil
}

func (d *Desk) remember(l *loan, why string) {
	all := append(d.past[l.learner.ID], ending{l.claim, why})
	d.past[l.learner.ID] = all[max(0, len(all)-remembered):]
}

// answer says how far a claim has come.
func (d *Desk) answer(l *loan) (borrow.Answer, error) {
	if err := d.ended(l.learner, l.claim); err != nil {
		return borrow.Answer{}, err
	}
	a := borrow.Answer{Loan: l.given}
	if held := d.out[l.learner.ID]; held != l {
		a.Place, a.Held = slices.Index(d.queue, l)+1, held != nil
	}
	a.Mark = fmt.Sprintf("%d-%v-%v", a.Place, a.Held, a.Loan != nil)
	return a, nil
}

// grant begins to make clusters ready for those who are first, as long as some may be lent. Who still has one lets
// others go first. The caller holds the lock.
func (d *Desk) grant() {
	for !d.closed && len(d.out) < d.opts.AtOnce {
		i := slices.IndexFunc(d.queue, func(l *loan) bool { return d.out[l.learner.ID] == nil })
		if i < 0 {
			break
		}
		l := d.queue[i]
		d.queue = slices.Delete(d.queue, i, i+1)
		d.out[l.learner.ID] = l
		d.tasks.Go(func() { d.prepare(l) })
	}
	d.tell()
}

// prepare gets somebody the cluster that was granted, unless they have gone.
func (d *Desk) prepare(l *loan) {
	c, _, err := d.opts.Pool.Claim(l.ctx)
	var key []byte
	if err == nil {
		if key, err = os.ReadFile(c.Kubeconfig); err != nil {
			d.opts.Pool.Discard(c.Name)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.out[l.learner.ID] != l:
		if err == nil {
			d.opts.Pool.Discard(c.Name)
		}
	case err != nil:
		d.opts.Log(fmt.Sprintf("no cluster for %s: %v", l.learner.Name, err))
		d.end(l, whyNotMade)
	default:
		l.name, l.given = c.Name, &borrow.Loan{Cluster: *c, Kubeconfig: key}
		l.given.Cluster.Kubeconfig = ""
		l.lent, l.heard = time.Now(), time.Now()
		d.tell()
	}
}

// end ends a claim, and takes back what it has. The caller holds the lock.
func (d *Desk) end(l *loan, why string) {
	l.cancel()
	if d.out[l.learner.ID] == l {
		delete(d.out, l.learner.ID)
		if l.given != nil {
			d.opts.Pool.Discard(l.name)
		}
	}
	d.queue = slices.DeleteFunc(d.queue, func(o *loan) bool { return o == l })
	d.remember(l, why)
	d.grant()
}

// Return ends a claim: a cluster is taken back, and a place in the queue given up. What is not known has ended before.
func (d *Desk) Return(learner store.Learner, claim string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.find(learner, claim); l != nil {
		d.end(l, whyReturned)
		return
	}
	if d.ended(learner, claim) == nil {
		// The claim itself may still be on its way.
		d.remember(&loan{learner: learner, claim: claim}, whyReturned)
	}
}

// Beat says that the borrower is still there. The error is an *[borrow.EndedError] when the cluster is not theirs any more.
func (d *Desk) Beat(learner store.Learner, claim string) error {
	_, err := d.Lent(learner, claim)
	return err
}

// Lent is the name of the cluster that is lent under that claim; whoever asks is still there. The error is an
// *[borrow.EndedError] when there is none.
func (d *Desk) Lent(learner store.Learner, claim string) (name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.find(learner, claim); l != nil && l.given != nil {
		l.heard = time.Now()
		return l.name, nil
	}
	if err := d.ended(learner, claim); err != nil {
		return "", err
	}
	return "", &borrow.EndedError{Why: whyUnknown}
}

// patrol takes back what nobody will give back.
func (d *Desk) patrol() {
	tick := time.NewTicker(patrolPeriod)
	defer tick.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-tick.C:
			d.takeBack(time.Now())
		}
	}
}

func (d *Desk) takeBack(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.out {
		if why := l.overdue(now); why != "" {
			if l.given != nil {
				d.opts.Log(fmt.Sprintf("took the cluster of %s back: %s", l.learner.Name, why))
			}
			d.end(l, why)
		}
	}
	for _, l := range slices.Clone(d.queue) {
		if why := l.overdue(now); why != "" {
			d.end(l, why)
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

// tell wakes all who await a change. The caller holds the lock.
func (d *Desk) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// await returns after the next change, and gives the lock away meanwhile. It says whether there was one.
func (d *Desk) await(ctx context.Context, patience <-chan time.Time) bool {
	changed := d.changed
	d.mu.Unlock()
	defer d.mu.Lock()
	select {
	case <-changed:
		return true
	case <-patience:
	case <-ctx.Done():
	}
	return false
}
