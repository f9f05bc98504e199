package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
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
	for _, lab := range c.Labs {
		tries, first := attempts(events, lab.Number)
		switch e, ok := passed[lab.Number]; {
		case ok:
			fmt.Fprintf(a.Out, "✓ lab %d  %-40s passed %s, %s after the first try, %s%s\n",
				lab.Number, lab.Title, e.Time.Local().Format("2006-01-02 15:04"), e.Time.Sub(first).Round(time.Minute), times(tries), unasked(e))
		case tries > 0:
			fmt.Fprintf(a.Out, "✗ lab %d  %-40s %s since %s\n", lab.Number, lab.Title, times(tries), first.Local().Format("2006-01-02 15:04"))
		default:
			fmt.Fprintf(a.Out, "  lab %d  %-40s\n", lab.Number, lab.Title)
		}
	}
	return nil
}

// attempts counts the verdicts on a lab that were the learner's, and gives the time of the first.
func attempts(events []verdict.Event, lab int) (n int, first time.Time) {
	for _, e := range events {
		if e.Lab != lab || e.Verdict == verdict.Environment {
			continue
		}
		if n == 0 {
			first = e.Time
		}
		n++
	}
	return n, first
}

// unasked says how much of a pass kind has yet to confirm.
func unasked(e verdict.Event) string {
	if len(e.NotChecked) == 0 {
		return ""
	}
	return ", without " + strings.Join(e.NotChecked, " and ")
}

func times(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}
