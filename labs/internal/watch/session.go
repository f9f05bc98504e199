// Package watch checks a lab again whenever the learner saves.
//
// [Files] says what was saved, and a [Session] turns that into checks, of which there is never more than one.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Session checks the workspace at its beginning and after every change.
type Session struct {
	// Lab is the number of the lab.
	Lab int
	// Check judges one lab. As soon as there is a result it calls answered, from any goroutine and at most once. It returns
	// when no process and no file of the check is left. When ctx ends it gives up, and cleans up all the same.
	Check func(ctx context.Context, lab int, answered func(*verdict.Result)) error
	// Report prints an answer, as the check command does.
	Report func(*verdict.Result)
	// Changes are those of the workspace.
	Changes <-chan struct{}
	// Out gets what is a report, Err everything else.
	Out, Err io.Writer
}

// Run works until ctx ends, whose error it returns. When it returns, no check is under way.
// It prints the error of a check that could not be done, and the next change tries again.
func (s *Session) Run(ctx context.Context) error {
	for s.check(ctx) {
		continue
	}
	return ctx.Err()
}

// check judges the lab once, and waits until there is something to judge again; false is the end. By then the check has ended.
func (s *Session) check(ctx context.Context) (again bool) {
	fmt.Fprintln(s.Out)
	verdict.Rule(s.Out, fmt.Sprintf("%s · lab %d", time.Now().Format(time.TimeOnly), s.Lab))
	ctx, cancel := context.WithCancel(ctx)
	answers, ended := make(chan *verdict.Result, 1), make(chan error, 1)
	go func() { ended <- s.Check(ctx, s.Lab, func(r *verdict.Result) { answers <- r }) }()
	defer func() {
		if cancel(); ended != nil {
			fmt.Fprintln(s.Err, "… ending the check under way, and cleaning up")
			s.complain(<-ended)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.Changes:
			return true
		case r := <-answers:
			s.Report(r)
			fmt.Fprintln(s.Out, waiting)
		case err := <-ended:
			if ended = nil; err != nil {
				s.complain(err)
				fmt.Fprintln(s.Err, waiting)
			}
		}
	}
}

// waiting is the last line on the screen while nothing happens.
const waiting = "waiting for a save; Ctrl-C ends this"

// complain tells an error, as every command does, but not that a check was cancelled.
func (s *Session) complain(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(s.Err, "lab:", plain.Text(err.Error()))
	}
}
