package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// evening is a session of lab 4 of 5, whose checks end when the test says so.
type evening struct {
	*testing.T
	changes chan Change
	keys    chan Key
	text    bytes.Buffer // all that is on the screen
	begun   []*attempt
	hints   []int
	active  int
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

func (e *evening) Check(ctx context.Context, lab int, answered func(*verdict.Result)) error {
	if e.active++; e.active > 1 {
		e.Errorf("%d checks at once", e.active)
	}
	defer func() { e.active-- }()
	a := &attempt{ctx, lab, answered, make(chan error)}
	e.begun = append(e.begun, a)
	err := <-a.finish
	if errors.Is(err, errDefect) {
		panic(err)
	}
	return err
}

// errDefect makes a check panic.
var errDefect = errors.New("a defect")

// open begins a session within a bubble of its own time.
func open(t *testing.T, test func(e *evening)) {
	t.Setenv("COLUMNS", "80")
	synctest.Test(t, func(t *testing.T) {
		e := &evening{T: t, changes: make(chan Change), keys: make(chan Key), over: make(chan error, 1)}
		ctx, stop := context.WithCancel(t.Context())
		e.stop = stop
		s := &Session{
			Lab: 4, Labs: 5, Checker: e, Changes: e.changes, Keys: e.keys, Out: &e.text, Err: &e.text,
			Report: func(r *verdict.Result) { fmt.Fprintf(&e.text, "REPORT lab %d %s\n", r.Lab, r.Verdict) },
			Hint: func(lab int) error {
				e.hints = append(e.hints, lab)
				return nil
			},
		}
		go func() {
			defer func() {
				if p := recover(); p != nil {
					e.over <- fmt.Errorf("panic: %v", p)
				}
			}()
			e.over <- s.Run(ctx)
		}()
		synctest.Wait()
		test(e)
	})
}

// last is the latest check; there have to be n by now.
func (e *evening) last(n int) *attempt {
	e.Helper()
	synctest.Wait()
	if len(e.begun) != n {
		e.Fatalf("%d checks have begun, want %d; the screen:\n%s", len(e.begun), n, &e.text)
	}
	return e.begun[n-1]
}

func (e *evening) save(paths ...string) {
	e.changes <- Change{time.Now(), paths}
	synctest.Wait()
}

func (e *evening) press(k Key) {
	e.keys <- k
	synctest.Wait()
}

func (a *attempt) answer(v verdict.Verdict) {
	a.answered(&verdict.Result{Lab: a.lab, Verdict: v, Cluster: verdict.Cluster{Provider: "kind"}})
	synctest.Wait()
}

func (a *attempt) end(err error) {
	a.finish <- err
	synctest.Wait()
}

// shows expects texts on the screen since the last call, in this order.
func (e *evening) shows(texts ...string) {
	e.Helper()
	rest := e.text.String()
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			e.Errorf("the screen lacks %q, or it comes too early:\n%s", text, &e.text)
			return
		}
		rest = after
	}
	e.text.Reset()
}

// quit ends the session, which has to have nothing under way then.
func (e *evening) quit() {
	e.Helper()
	e.press(Quit)
	if err := <-e.over; err != nil {
		e.Errorf("q ends with %v", err)
	}
}

const waiting = "waiting for a save — h hint · n next lab · r again · q quit"

func TestAnEveningBeginsWithACheck(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		if first.lab != 4 {
			t.Errorf("lab %d is checked first", first.lab)
		}
		e.shows("── ", "lab 4 ──")
		time.Sleep(3 * time.Second)
		first.answer(verdict.Fail)
		e.shows("REPORT lab 4 fail", "on a fresh kind cluster that was created for it · 3.0 s from start to verdict", waiting)
		first.end(nil)
		e.quit()
		e.last(1)
	})
}

// The answer is what the learner waits for; the cluster goes afterwards.
func TestAnAnswerIsShownBeforeItsCheckHasCleanedUp(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		first.answer(verdict.Pass)
		e.shows("REPORT lab 4 pass", waiting)
		e.save("cmd/main.go")
		e.last(1)
		e.shows("still cleaning up")
		e.save("cmd/main.go")
		if e.text.Len() > 0 {
			t.Errorf("told twice: %s", &e.text)
		}
		first.end(nil)
		second := e.last(2)
		time.Sleep(5 * time.Second)
		second.answered(&verdict.Result{Lab: 4, Verdict: verdict.Pass, Cluster: verdict.Cluster{Provider: "kind", Pooled: true}})
		synctest.Wait()
		e.shows("lab 4 · cmd/main.go ──", "on a fresh kind cluster that waited in the pool · 5.0 s from save to verdict")
		second.end(nil)
		e.quit()
	})
}

func TestASaveGivesUpTheCheckThatIsUnderWay(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		e.save("a.go")
		if first.ctx.Err() == nil {
			t.Error("the check goes on")
		}
		time.Sleep(2 * time.Second)
		e.last(1) // it has not ended, and so nothing begins
		e.save("b.go", "c.go")
		first.end(errors.Join(context.Canceled, nil))
		second := e.last(2)
		if second.ctx.Err() != nil {
			t.Error("the new check is given up as well")
		}
		e.shows("giving up", "lab 4 · b.go and 1 more")
		if strings.Contains(e.text.String(), "lab:") {
			t.Errorf("giving up is told as an error:\n%s", &e.text)
		}
		second.answer(verdict.Pass)
		second.end(nil)
		e.quit()
		e.last(2)
	})
}

// It is about what the learner has replaced meanwhile.
func TestTheAnswerOfACheckThatWasGivenUpIsNotShown(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		e.save("a.go")
		first.answer(verdict.Pass)
		first.end(nil)
		second := e.last(2)
		if strings.Contains(e.text.String(), "REPORT") {
			t.Errorf("it is shown:\n%s", &e.text)
		}
		e.press(Next) // nor does it count
		e.shows("lab 4 is being checked")
		second.answer(verdict.Fail)
		second.end(nil)
		e.quit()
	})
}

func TestAfterACheckThatCouldNotBeDoneTheNextSaveTriesAgain(t *testing.T) {
	open(t, func(e *evening) {
		e.last(1).end(errors.New("the engine is gone"))
		e.shows("lab: the engine is gone\n", waiting)
		e.save("a.go")
		second := e.last(2)
		e.save("a.go")
		second.end(fmt.Errorf("check: %w", errors.Join(fmt.Errorf("run: %w", context.Canceled))))
		third := e.last(3)
		if text := e.text.String(); strings.Contains(text, "lab:") {
			t.Errorf("giving up is told as an error:\n%s", text)
		}
		e.save("a.go")
		third.end(errors.Join(context.Canceled, errors.New("cannot delete the cluster")))
		e.shows("lab: cannot delete the cluster\n")
		e.last(4).end(nil)
		e.quit()
	})
}

func TestKeysWhileALabIsNotPassed(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		e.press(Hint)
		e.shows("no verdict yet")
		e.press(Next)
		e.shows("is being checked")
		first.answer(verdict.Fail)
		first.end(nil)
		e.press(Next)
		e.shows("has not passed")
		e.press(Hint)
		e.shows(waiting)
		if diff := cmp.Diff([]int{4}, e.hints); diff != "" {
			t.Errorf("hints for labs (-want +got):\n%s", diff)
		}
		e.press(Again)
		if second := e.last(2); second.lab != 4 {
			t.Errorf("lab %d is checked again", second.lab)
		}
		e.press(Hint) // about the verdict that is known
		if len(e.hints) != 2 {
			t.Errorf("hints: %v", e.hints)
		}
		e.last(2).end(nil)
		e.quit()
	})
}

func TestNextGoesOnAfterAPassUntilTheLastLab(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		first.answer(verdict.Pass)
		e.press(Next)
		first.end(nil)
		second := e.last(2)
		if second.lab != 5 {
			t.Errorf("lab %d comes after lab 4", second.lab)
		}
		e.press(Hint)
		e.shows("lab 5 has no verdict yet")
		second.answer(verdict.Pass)
		second.end(nil)
		e.press(Next)
		e.shows("lab 5 was the last one")
		e.last(2)
		e.quit()
	})
}

// What was saved after a pass has not passed, even if its check was never answered.
func TestNextIsAboutWhatWasCheckedLast(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		first.answer(verdict.Pass)
		first.end(nil)
		e.save("a.go")
		e.last(2).end(errors.New("the engine is gone"))
		e.press(Next)
		e.shows("has not passed")
		e.last(2)
		e.quit()
	})
}

func TestQuittingEndsACheckAndWaitsForIt(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		e.press(Quit)
		if first.ctx.Err() == nil {
			t.Error("the check goes on")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-e.over:
			t.Fatalf("the session has ended (%v), and its check has not", err)
		default:
		}
		e.shows("cleaning up")
		first.end(context.Canceled)
		if err := <-e.over; err != nil {
			t.Errorf("q ends with %v", err)
		}
	})
}

func TestAnInterruptEndsACheckAndIsToldApartFromQuitting(t *testing.T) {
	open(t, func(e *evening) {
		first := e.last(1)
		e.stop()
		first.end(first.ctx.Err())
		if err := <-e.over; !errors.Is(err, context.Canceled) {
			t.Errorf("an interrupt ends with %v", err)
		}
	})
}

// The terminal is given back by who opened it; a panic of another goroutine would go past them.
func TestAPanicOfACheckIsThatOfTheSession(t *testing.T) {
	open(t, func(e *evening) {
		e.last(1).end(errDefect)
		if err := <-e.over; err == nil || !strings.Contains(err.Error(), "a defect") || !strings.Contains(err.Error(), "session_test.go") {
			t.Errorf("the session ends with %v, want the panic and where it comes from", err)
		}
	})
}

func TestWithoutAKeyboardNoKeysAreOffered(t *testing.T) {
	var text bytes.Buffer
	s := &Session{Err: &text}
	s.prompt()
	if got := text.String(); got != "waiting for a save\n" {
		t.Errorf("%q", got)
	}
}

func TestWithoutAClusterNoneIsNamed(t *testing.T) {
	if got := ground(&verdict.Result{}); got != "without a cluster" {
		t.Errorf("%q", got)
	}
}
