// Package watch checks a lab again whenever the learner saves.
//
// [Files] says what was saved, [Lines] what was typed, and a [Session] turns both into checks, of which there is never
// more than one.
package watch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Session checks the workspace at its beginning and after every change, and does what the learner asks for meanwhile.
type Session struct {
	// Lab is the number of the lab to begin with, Labs that of the last one.
	Lab, Labs int
	// Check judges one lab. It calls answered, from any goroutine and at most once, as soon as there is an answer,
	// and returns when nothing of the check is left that the next one could meet: no process, no file. When ctx ends
	// it gives up, and cleans up all the same.
	Check func(ctx context.Context, lab int, answered func(*verdict.Result)) error
	// Report prints an answer, as the check command does.
	Report func(*verdict.Result)
	// Hint tells the next hint for what failed last in a lab, as the hint command does.
	Hint func(lab int) error
	// Changes are those of the workspace.
	Changes <-chan Change
	// Lines are the learner's; nil when nobody can type.
	Lines <-chan string
	// Out gets what is a report, Err everything else.
	Out, Err io.Writer

	current *check  // under way, be it with cleaning up; nil when nothing is
	next    *reason // for a check as soon as the current one has ended; nil when there is none
	passed  bool    // the last thing that was checked did
}

// reason is why a check begins.
type reason struct {
	since time.Time // from when on the learner waits for it
	after string    // how that is called: save, start, Enter
	what  string    // for the separator, "" for nothing
}

// check is one check under way.
type check struct {
	reason
	lab    int
	cancel context.CancelFunc
	events chan event
	done   bool // it has answered, or was cancelled: its end is all that is still wanted of it
}

// event is an answer of a check, or its end.
type event struct {
	result *verdict.Result // nil: the end
	err    error
}

// Lines are the lines that somebody types, until the input ends. Its reader stays behind in a read that nothing can end,
// and ends with the process.
func Lines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- strings.ToLower(strings.TrimSpace(scanner.Text()))
		}
	}()
	return lines
}

// Run works until the learner quits, which is no error, or ctx ends, whose error it returns. When it returns, no
// check is under way. A check that could not be done is told, and the next change tries again.
func (s *Session) Run(ctx context.Context) error {
	defer s.abandon()
	s.start(ctx, reason{since: time.Now(), after: "start"})
	for {
		var events <-chan event
		if s.current != nil {
			events = s.current.events
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-s.Changes:
			s.again(ctx, reason{since: change.Noticed, after: "save", what: saved(change.Paths)})
		case line := <-s.Lines:
			if line == "q" {
				return nil
			}
			s.do(ctx, line)
		case e := <-events:
			s.hear(ctx, e)
		}
	}
}

// start begins a check. Nothing may be under way.
func (s *Session) start(ctx context.Context, r reason) {
	ctx, cancel := context.WithCancel(ctx)
	c := &check{reason: r, lab: s.Lab, cancel: cancel, events: make(chan event, 2)}
	s.current, s.next, s.passed = c, nil, false
	title := fmt.Sprintf("%s · lab %d", time.Now().Format(time.TimeOnly), c.lab)
	if c.what != "" {
		title += " · " + c.what
	}
	fmt.Fprintln(s.Out)
	verdict.Rule(s.Out, title)
	go func() {
		c.events <- event{err: s.Check(ctx, c.lab, func(r *verdict.Result) { c.events <- event{result: r} })}
	}()
}

// again cancels the check that is under way, and begins one after its end.
func (s *Session) again(ctx context.Context, r reason) {
	switch c := s.current; {
	case c == nil:
		s.start(ctx, r)
		return
	case !c.done:
		s.say("cancelling the check that was under way")
	case s.next == nil:
		s.say("the last check is still cleaning up; the next follows")
	}
	s.current.done, s.next = true, &r
	s.current.cancel()
}

// do does what a line asks for.
func (s *Session) do(ctx context.Context, line string) {
	idle := s.next == nil && (s.current == nil || s.current.done)
	switch {
	case line == "" || line == "r":
		s.again(ctx, reason{since: time.Now(), after: "Enter"})
	case line == "h":
		s.complain(s.Hint(s.Lab))
		if idle {
			s.prompt()
		}
	case line == "n" && (!idle || !s.passed):
		s.say(fmt.Sprintf("lab %d has not passed: n goes on once it has", s.Lab))
	case line == "n" && s.Lab == s.Labs:
		s.say(fmt.Sprintf("lab %d was the last one", s.Lab))
	case line == "n":
		s.Lab++
		s.again(ctx, reason{since: time.Now(), after: "Enter"})
	default:
		s.prompt()
	}
}

// hear shows an answer, which may come before the check has cleaned up, or begins the next check after the end of this.
func (s *Session) hear(ctx context.Context, e event) {
	c := s.current
	switch {
	case e.result == nil:
		s.release(e.err)
		if s.next != nil {
			s.start(ctx, *s.next)
		} else if !c.done {
			s.prompt()
		}
	case !c.done:
		c.done, s.passed = true, e.result.Verdict == verdict.Pass
		s.Report(e.result)
		verdict.Note(s.Out, fmt.Sprintf("%.1f s from %s to verdict", time.Since(c.since).Seconds(), c.after))
		s.prompt()
	}
}

// abandon cancels what is under way and waits for its end, which is bounded by what a check may take to clean up.
func (s *Session) abandon() {
	if s.current == nil {
		return
	}
	s.current.cancel()
	s.say("cleaning up")
	for e := range s.current.events {
		if e.result == nil {
			s.release(e.err)
			return
		}
	}
}

// release lets go of a check that has ended, and tells what went wrong beside its having been cancelled: a cluster that
// could not be deleted.
func (s *Session) release(err error) {
	s.current.cancel()
	s.current = nil
	s.complain(withoutCancellation(err))
}

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

// prompt is the last line on the screen while nothing happens.
func (s *Session) prompt() {
	text := "waiting for a save"
	if s.Lines != nil {
		text += ", or for Enter (check again), h (hint), n (next lab) or q (quit) and Enter"
	}
	verdict.Note(s.Err, text)
}

// say tells what happens now, as every command does.
func (s *Session) say(line string) { fmt.Fprintln(s.Err, "…", line) }

// complain tells an error, as every command does.
func (s *Session) complain(err error) {
	if err != nil {
		fmt.Fprintln(s.Err, "lab:", plain.Text(err.Error()))
	}
}

// saved names what was saved: one file, and how many more.
func saved(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}
