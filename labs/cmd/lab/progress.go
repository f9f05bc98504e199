package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newProgressCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "progress",
		Short: "Which steps pass, when, how long they took (make progress)",
		Args:  cli.NoArguments("progress"),
		RunE:  func(*cobra.Command, []string) error { return a.printProgress() },
	}
}

func (a *app) printProgress() error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return err
	}
	passed := verdict.PassedLabs(events)
	var rows [][]string
	for _, lab := range c.Labs {
		mark, state := " ", ""
		tries, first := attempts(events, lab.Number)
		switch e, ok := passed[lab.Number]; {
		case ok:
			mark = "✓"
			state = fmt.Sprintf("passed %s, %s after the first try, %s", minute(e.Time), e.Time.Sub(first).Round(time.Minute), times(tries))
			if len(e.NotChecked) > 0 {
				state += ", without " + strings.Join(e.NotChecked, " and ")
			}
		case tries > 0:
			mark, state = "✗", fmt.Sprintf("%s since %s", times(tries), minute(first))
		}
		rows = append(rows, []string{fmt.Sprintf("%s lab %d", mark, lab.Number), lab.Title, state})
	}
	return plain.Table(a.Out, rows...)
}

// attempts counts the verdicts on a lab that were about the learner's code, and gives the time of the first.
func attempts(events []verdict.Event, lab int) (n int, first time.Time) {
	for _, e := range slices.Backward(events) {
		if e.Lab == lab && e.Verdict != verdict.Environment {
			n, first = n+1, e.Time
		}
	}
	return n, first
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func times(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}
