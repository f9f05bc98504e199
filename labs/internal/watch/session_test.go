package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// fixture is a session on lab 4, whose checks end when the test says so.
type fixture struct {
	*testing.T
	changes chan struct{}
	screen  bytes.Buffer
	begun   []*attempt
	stop    context.CancelFunc
	over    chan error
}

// attempt is one check that the session asked for.
type attempt struct {
	ctx      context.Context
	lab      int
	answered func(*verdict.Result)
	finish   chan error
}

// open begins a session within a bubble of its own time.
func open(t *testing.T, test func(f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, changes: make(chan struct{}), over: make(chan error, 1)}
		active := 0
		s := &Session{
			Lab: 4, Changes: f.changes, Out: &f.screen, Err: &f.screen,
			Check: func(ctx context.Context, lab int, answered func(*verdict.Result)) error {
				if active++; active > 1 {
					t.Errorf("%d checks at once", active)
				}
				defer func() { active-- }()
				a := &attempt{ctx, lab, answered, make(chan error)}
				f.begun = append(f.begun, a)
				return <-a.finish
			},
			Report: func(r *verdict.Result) { fmt.Fprintf(&f.screen, "REPORT lab %d %s\n", r.Lab, r.Verdict) },
		}
		ctx, stop := context.WithCancel(t.Context())
		f.stop = stop
		go func() { f.over <- s.Run(ctx) }()
		synctest.Wait()
		test(f)
	})
}

// last is the latest check; there have to be n by now.
func (f *fixture) last(n int) *attempt {
	f.Helper()
	synctest.Wait()
	if len(f.begun) != n {
		f.Fatalf("%d checks have begun, want %d; the screen:\n%s", len(f.begun), n, &f.screen)
	}
	return f.begun[n-1]
}

func (f *fixture) save() {
	f.changes <- struct{}{}
	synctest.Wait()
}

func (a *attempt) answer(v verdict.Verdict) {
	a.answered(&verdict.Result{Lab: a.lab, Verdict: v})
	synctest.Wait()
}

func (a *attempt) end(err error) {
	a.finish <- err
	synctest.Wait()
}

// shows expects texts on the screen since the last call, in this order.
func (f *fixture) shows(texts ...string) {
	f.Helper()
	rest := f.screen.String()
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			f.Errorf("the screen lacks %q, or it comes too early:\n%s", text, &f.screen)
			return
		}
		rest = after
	}
	f.screen.Reset()
}

// quit ends the session, which has to have nothing under way then.
func (f *fixture) quit() {
	f.Helper()
	f.stop()
	if err := <-f.over; !errors.Is(err, context.Canceled) {
		f.Errorf("it ends with %v", err)
	}
}

func TestWatchChecksOnStart(t *testing.T) {
	open(t, func(f *fixture) {
		first := f.last(1)
		f.shows("── ", "lab 4 ──")
		first.answer(verdict.Fail)
		f.shows("REPORT lab 4 fail", waiting) // before the clean-up
		f.save()
		f.last(1)
		first.end(nil)
		f.last(2).end(nil)
		f.shows("lab 4 ──")
		f.quit()
	})
}

// The answer of a check that was cancelled is about what the learner has replaced meanwhile.
func TestSaveCancelsTheCheckUnderWay(t *testing.T) {
	open(t, func(f *fixture) {
		first := f.last(1)
		f.save()
		if first.ctx.Err() == nil {
			t.Error("the check goes on")
		}
		first.answer(verdict.Pass)
		first.end(errors.Join(context.Canceled, nil))
		second := f.last(2)
		if second.ctx.Err() != nil || strings.Contains(f.screen.String(), "REPORT") || strings.Contains(f.screen.String(), "lab:") {
			t.Errorf("%v, and the screen is\n%s", second.ctx.Err(), &f.screen)
		}
		f.shows("ending the check", "lab 4")
		second.end(nil)
		f.quit()
	})
}

func TestNextSaveTriesAgainAfterError(t *testing.T) {
	open(t, func(f *fixture) {
		f.last(1).end(errors.New("the engine is gone"))
		f.shows("lab: the engine is gone\n", waiting)
		f.save()
		second := f.last(2)
		f.save()
		second.end(errors.New("cannot delete the cluster"))
		f.shows("lab: cannot delete the cluster\n")
		f.last(3).end(nil)
		f.quit()
	})
}

func TestInterruptWaitsForTheCheck(t *testing.T) {
	open(t, func(f *fixture) {
		first := f.last(1)
		f.stop()
		synctest.Wait()
		if first.ctx.Err() == nil || len(f.over) > 0 {
			t.Errorf("the check has %v, the session has ended: %t", first.ctx.Err(), len(f.over) > 0)
		}
		f.shows("cleaning up")
		first.end(context.Canceled)
		f.quit()
	})
}
