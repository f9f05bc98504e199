package server

import (
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/page"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// live is the state of the room in memory: what the store holds, digested. Every change has a number, so that
// a browser that was away gets what it missed and no more.
type live struct {
	store  *store.Store
	course *course.Course
	rules  room.Rules
	now    func() time.Time

	mu sync.Mutex
	// epoch tells numbers of this process from those of one before.
	epoch string
	// version is the number of the last change.
	version uint64
	// last is the id of the last result that was read.
	last     int64
	learners map[int64]*entry
	// sorted are the learners in the page's order; ordered is when that changed last.
	sorted  []*room.Learner
	ordered uint64
	summary page.Summary
	// changed is closed at the next change, and replaced.
	changed chan struct{}
}

// entry is a learner and their row as it was shown last.
type entry struct {
	*room.Learner
	row     page.Row
	version uint64
}

// update is what a browser gets: rows that changed since the number it has, and the top of the page. Order is
// there when somebody came.
type update struct {
	Rows    []page.Row   `json:"rows"`
	Order   []int64      `json:"order,omitempty"`
	Summary page.Summary `json:"summary"`
}

func newLive(s *store.Store, c *course.Course, rules room.Rules, now func() time.Time) *live {
	return &live{
		store: s, course: c, rules: rules, now: now,
		epoch: strings.ToLower(rand.Text()[:8]), learners: map[int64]*entry{}, changed: make(chan struct{}),
	}
}

// refresh reads what the store has got since the last time, from whatever process, and notes what is different
// on the page now. Time alone can change it, too.
func (l *live) refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	touched, err := l.read(ctx)
	if err != nil {
		return err
	}
	next := l.version + 1
	different := l.sort(next)
	for id, e := range l.learners {
		if !touched[id] && e.version != 0 && !e.row.Stuck && e.Stuck(l.rules, l.now()) == nil {
			continue // nothing about it can be new
		}
		row := page.NewRow(e.Learner, l.course.Labs, l.rules, l.now())
		if e.version == 0 || !reflect.DeepEqual(row, e.row) {
			e.row, e.version, different = row, next, true
		}
	}
	summary := page.NewSummary(room.Summarize(l.sorted, l.course.Labs, l.rules, l.now()), l.now())
	if !reflect.DeepEqual(summary, l.summary) {
		l.summary, different = summary, true
	}
	if different {
		l.version = next
		close(l.changed)
		l.changed = make(chan struct{})
	}
	return nil
}

// read takes new learners and results from the store, and says whose rows they touch.
func (l *live) read(ctx context.Context) (touched map[int64]bool, err error) {
	last := l.last
	attempts := map[int64][]room.Attempt{}
	// Results first: a learner is kept before their first result.
	if err := l.store.Each(ctx, last, func(r store.Result) error {
		parsed, err := r.Parse()
		if err == nil && parsed.Lab <= len(l.course.Labs) { // else it is of a course that had more labs
			attempts[r.Learner] = append(attempts[r.Learner], room.NewAttempt(r.ID, r.At, parsed))
		}
		last = r.ID
		return err
	}); err != nil {
		return nil, err
	}
	learners, err := l.store.Learners(ctx)
	if err != nil {
		return nil, err
	}
	for _, learner := range learners {
		if l.learners[learner.ID] == nil {
			l.learners[learner.ID] = &entry{Learner: room.NewLearner(learner.ID, learner.Name)}
		}
	}
	touched = map[int64]bool{}
	for id, those := range attempts {
		for _, attempt := range those {
			l.learners[id].Add(attempt)
		}
		touched[id] = true
	}
	l.last = last
	return touched, nil
}

// sort puts newcomers in their place, and says whether there were any.
func (l *live) sort(next uint64) bool {
	if len(l.sorted) == len(l.learners) {
		return false
	}
	l.sorted = l.sorted[:0]
	for _, e := range l.learners {
		l.sorted = append(l.sorted, e.Learner)
	}
	room.SortByName(l.sorted)
	l.ordered = next
	return true
}

// board is the whole page.
func (l *live) board() page.Board {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := page.Board{Version: l.number(), At: l.now(), Labs: page.Labs(l.course), Summary: l.summary}
	for _, learner := range l.sorted {
		b.Rows = append(b.Rows, l.learners[learner.ID].row)
	}
	return b
}

func (l *live) number() string { return l.epoch + "-" + strconv.FormatUint(l.version, 10) }

// since is what has changed since the number after, nil if nothing has, and a channel that is closed when
// something does. A number of another process, or none, gets everything.
func (l *live) since(after string) (u *update, number string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch, digits, _ := strings.Cut(after, "-")
	known, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || epoch != l.epoch || known > l.version {
		known = 0
	}
	if known == l.version && known > 0 {
		return nil, l.number(), l.changed
	}
	u = &update{Rows: []page.Row{}, Summary: l.summary}
	for _, learner := range l.sorted {
		if e := l.learners[learner.ID]; e.version > known {
			u.Rows = append(u.Rows, e.row)
		}
	}
	if l.ordered > known {
		for _, learner := range l.sorted {
			u.Order = append(u.Order, learner.ID)
		}
	}
	return u, l.number(), l.changed
}

// cell finds a learner's attempts on a lab: the one with that id, else the last, else none. The error is
// [store.ErrNotFound] when there is no such learner, lab or attempt.
func (l *live) cell(ctx context.Context, learner int64, number int, id int64) (page.Detail, error) {
	lab, err := l.course.Lab(number)
	if err != nil {
		return page.Detail{}, store.ErrNotFound
	}
	if id, err = l.attempt(learner, number, id); err != nil {
		return page.Detail{}, err
	}
	var result *verdict.Result
	if id != 0 {
		kept, err := l.store.Result(ctx, id)
		if err != nil {
			return page.Detail{}, err
		}
		if result, err = kept.Parse(); err != nil {
			return page.Detail{}, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return page.NewDetail(l.course, l.learners[learner].Learner, lab, id, result), nil
}

// attempt is the id of the result that a cell opens, 0 if there is none yet.
func (l *live) attempt(learner int64, lab int, id int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.learners[learner]
	if e == nil {
		return 0, store.ErrNotFound
	}
	if id == 0 {
		if last := e.Last(lab); last != nil {
			return last.ID, nil
		}
		return 0, nil
	}
	for _, a := range e.Attempts(lab) {
		if a.ID == id {
			return id, nil
		}
	}
	return 0, store.ErrNotFound
}
