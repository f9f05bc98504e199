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
	// Check judges one lab. As soon as there is a result it calls answered, from any goroutine and at most once. It returns
	// when no process and no file of the check is left. When ctx ends it gives up, and cleans up all the same.
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
}

// Lines are the lines that somebody types, until the input ends. Its goroutine reads until the process ends: nothing can interrupt
// a read.
func Lines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- strings.ToLower(strings.TrimSpace(scanner.Text()))
		}
	}()
	return lines
}

// Run works until the learner quits, which is no error, or ctx ends, whose error it returns. When it returns, no check is under way.
// It prints the error of a check that could not be done, and the next change tries again.
func (s *Session) Run(ctx context.Context) error {
	for why := (&Change{Noticed: time.Now()}); why != nil; {
		why = s.check(ctx, *why)
	}
	return ctx.Err()
}

// check judges the lab once, and does what is asked for until there is something to judge again, which it returns: nil is the end. By
// then the check has ended.
func (s *Session) check(ctx context.Context, why Change) (next *Change) {
	title := fmt.Sprintf("%s · lab %d", time.Now().Format(time.TimeOnly), s.Lab)
	if n := len(why.Paths); n > 0 {
		title += " · " + why.Paths[0]
		if n > 1 {
			title += fmt.Sprintf(" and %d more", n-1)
		}
	}
	fmt.Fprintln(s.Out)
	verdict.Rule(s.Out, title)
	ctx, cancel := context.WithCancel(ctx)
	answers, ended := make(chan *verdict.Result, 1), make(chan error, 1)
	go func(lab int) { ended <- s.Check(ctx, lab, func(r *verdict.Result) { answers <- r }) }(s.Lab)
	defer func() {
		if cancel(); ended != nil {
			fmt.Fprintln(s.Err, "… ending the check under way, and cleaning up")
			s.complain(<-ended)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-s.Changes:
			return &change
		case line := <-s.Lines:
			switch line {
			case "q":
				return nil
			case "n":
				s.Lab = min(s.Lab+1, s.Labs)
				return &Change{Noticed: time.Now()}
			case "":
				return &Change{Noticed: time.Now()}
			case "h":
				s.complain(s.Hint(s.Lab))
			}
			s.prompt()
		case r := <-answers:
			s.Report(r)
			verdict.Note(s.Out, fmt.Sprintf("%.1f s to verdict", time.Since(why.Noticed).Seconds()))
			s.prompt()
		case err := <-ended:
			if ended = nil; err != nil {
				s.complain(err)
				s.prompt()
			}
		}
	}
}

// prompt is the last line on the screen while nothing happens.
func (s *Session) prompt() {
	text := "waiting for a save"
	if s.Lines != nil {
		text += ", or for Enter (check again), h (hint), n (next lab) or q (quit) and Enter"
	}
	verdict.Note(s.Err, text)
}

// complain tells an error, as every command does, but not that a check was cancelled.
func (s *Session) complain(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			s.complain(e)
		}
	} else if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(s.Err, "lab:", plain.Text(err.Error()))
	}
}
