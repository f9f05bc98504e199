// Package watch checks a lab again whenever the learner saves.
//
// [Files] says when what a verdict depends on has changed, [Keys] what the learner types, and a [Session] turns
// both into checks, of which there is never more than one.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// Checker judges the workspace.
type Checker interface {
	// Check judges one lab. It calls answered, from any goroutine and at most once, as soon as there is an answer,
	// and returns when nothing of the check is left that the next one could meet: no process, no file. When ctx ends
	// it gives up, and cleans up all the same.
	Check(ctx context.Context, lab int, answered func(*verdict.Result)) error
}

// Session is an evening with the workspace: a check at its beginning and after every change, and what the learner
// asks for with a key meanwhile.
type Session struct {
	// Lab is the number of the lab to begin with, Labs that of the last one.
	Lab, Labs int
	Checker   Checker
	// Report prints an answer, as the check command does.
	Report func(*verdict.Result)
	// Hint tells the next hint for what failed last in a lab, as the hint command does.
	Hint func(lab int) error
	// Changes are those of the workspace.
	Changes <-chan Change
	// Keys are the learner's; nil when nobody can type.
	Keys <-chan Key
	// Out gets what is a report, Err everything else.
	Out, Err io.Writer

	current *check       // under way, be it with cleaning up; nil when nothing is
	next    *occasion    // for a check as soon as the current one has ended; nil when there is none
	judged  map[int]bool // the labs that had an answer
	passed  bool         // the last thing that was checked did
}

// occasion is why a check begins.
type occasion struct {
	since time.Time // from when on the learner waits for it
	after string    // how that is called: save, start, key
	what  string    // for the separator, "" for nothing
}

// check is one check under way.
type check struct {
	occasion
	lab     int
	cancel  context.CancelFunc
	answers chan *verdict.Result
	end     chan end
	settled bool // it has answered, or was given up: nothing more is wanted of it than its end
}

// end is how a check ended.
type end struct {
	err   error
	panic any
}

// Run works until the learner quits, which is no error, or ctx ends, whose error it returns. When it returns, no
// check is under way. A check that could not be done is told, and the next change tries again.
func (s *Session) Run(ctx context.Context) error {
	s.judged = map[int]bool{}
	defer s.abandon()
	s.start(ctx, occasion{since: time.Now(), after: "start"})
	for {
		answers, ended := s.current.channels()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-s.Changes:
			s.again(ctx, occasion{since: change.Noticed, after: "save", what: saved(change.Paths)})
		case key := <-s.Keys:
			if quit := s.press(ctx, key); quit {
				return nil
			}
		case result := <-answers:
			s.answer(result)
		case e := <-ended:
			s.ended(ctx, e)
		}
	}
}

// channels are nil, and so never ready, while no check is under way.
func (c *check) channels() (<-chan *verdict.Result, <-chan end) {
	if c == nil {
		return nil, nil
	}
	return c.answers, c.end
}

// start begins a check. Nothing may be under way.
func (s *Session) start(ctx context.Context, o occasion) {
	ctx, cancel := context.WithCancel(ctx)
	c := &check{occasion: o, lab: s.Lab, cancel: cancel, answers: make(chan *verdict.Result, 1), end: make(chan end, 1)}
	s.current, s.next, s.passed = c, nil, false
	s.separate(c)
	go func() {
		var e end
		// A panic of this goroutine would end the process with the terminal and the clusters as they are.
		defer func() {
			if p := recover(); p != nil {
				e.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
			c.end <- e
		}()
		e.err = s.Checker.Check(ctx, c.lab, func(r *verdict.Result) { c.answers <- r })
	}()
}

// again begins a check, after the end of the one that is under way: that one is given up.
func (s *Session) again(ctx context.Context, o occasion) {
	if s.current == nil {
		s.start(ctx, o)
		return
	}
	s.giveUp()
	s.next = &o
}

// giveUp ends the check that is under way, and says so unless it is known.
func (s *Session) giveUp() {
	switch {
	case !s.current.settled:
		s.say("giving up the check that was under way")
	case s.next == nil:
		s.say("the last check is still cleaning up; the next follows")
	}
	s.current.settled = true
	s.current.cancel()
}

// press does what a key asks for, and says whether that is to end.
func (s *Session) press(ctx context.Context, key Key) (quit bool) {
	switch key {
	case Quit:
		return true
	case Again:
		s.again(ctx, occasion{since: time.Now(), after: "key"})
	case Hint:
		s.hint()
	case Next:
		s.goOn(ctx)
	}
	return false
}

func (s *Session) hint() {
	if !s.judged[s.Lab] {
		s.say(fmt.Sprintf("lab %d has no verdict yet: h tells a hint after it", s.Lab))
		return
	}
	if err := s.Hint(s.Lab); err != nil {
		s.complain(err)
	}
	if s.waiting() {
		s.prompt()
	}
}

// goOn begins with the next lab once this one has passed.
func (s *Session) goOn(ctx context.Context) {
	switch {
	case !s.waiting():
		s.say(fmt.Sprintf("lab %d is being checked: n goes on once it has passed", s.Lab))
	case !s.passed:
		s.say(fmt.Sprintf("lab %d has not passed: n goes on once it has", s.Lab))
	case s.Lab == s.Labs:
		s.say(fmt.Sprintf("lab %d was the last one", s.Lab))
	default:
		s.Lab++
		s.again(ctx, occasion{since: time.Now(), after: "key"})
	}
}

// waiting says whether there is nothing to come before the next save or key.
func (s *Session) waiting() bool {
	return s.next == nil && (s.current == nil || s.current.settled)
}

// answer shows what a check found. It may still be cleaning up.
func (s *Session) answer(r *verdict.Result) {
	c := s.current
	if c.settled {
		return
	}
	c.settled = true
	s.judged[c.lab], s.passed = true, r.Verdict == verdict.Pass
	s.Report(r)
	s.summarize(r, c)
	s.prompt()
}

// ended is the end of the current check, and the beginning of the next.
func (s *Session) ended(ctx context.Context, e end) {
	c := s.current
	select {
	case r := <-c.answers: // both were there, and this one comes first
		s.answer(r)
	default:
	}
	s.release(e)
	switch {
	case s.next != nil:
		s.start(ctx, *s.next)
	case !c.settled:
		s.prompt()
	}
}

// abandon gives up what is under way and waits for its end, which is bounded by what a check may take to clean up.
func (s *Session) abandon() {
	if s.current == nil {
		return
	}
	s.current.cancel()
	select {
	case e := <-s.current.end:
		s.release(e)
	default:
		s.say("cleaning up")
		s.release(<-s.current.end)
	}
}

// release lets go of a check that has ended, and tells what went wrong.
func (s *Session) release(e end) {
	s.current.cancel()
	s.current = nil
	if e.panic != nil {
		panic(e.panic)
	}
	if err := withoutCancellation(e.err); err != nil {
		s.complain(err)
	}
}

// withoutCancellation is what is wrong beside a check having been given up: a cluster that could not be deleted.
func withoutCancellation(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, e := range joined.Unwrap() {
			rest = append(rest, withoutCancellation(e))
		}
		return errors.Join(rest...)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
