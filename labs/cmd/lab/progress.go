package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func (a *app) progress(context.Context) error {
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

func times(n int) string { return strings.Replace(cli.Count(n, "try"), "trys", "tries", 1) }

func newDiffCommand(a *app) *cobra.Command {
	var force bool
	cmd := command("diff N", `Where our solution of step N differs from yours, after it passed (make diff-N)

Other ways are right, too: the checks are the measure, not this. As it shows the solution, it waits until step N has passed in this workspace.`,
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.diff(ctx, args[0], force) })
	cmd.Flags().BoolVar(&force, "force", false, "show the solution before the step has passed")
	return cmd
}

func (a *app) diff(ctx context.Context, lab string, force bool) error {
	c, n, err := a.lab(lab)
	if err != nil {
		return err
	}
	if _, err := os.Stat(a.workspace); err != nil {
		return exit.Usage("there is no workspace %s yet: make lab-1 makes one", a.workspaceName())
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return err
	}
	if _, passed := verdict.PassedLabs(events)[n]; !passed && !force {
		return exit.Usage("this shows the solution, and lab %d has not passed in %s yet: make lab-%d%s; make diff-%d FORCE=1%s shows it all the same",
			n, a.workspaceName(), n, a.workspaceArg(), n, a.workspaceArg())
	}
	diff, err := c.Diff(ctx, a.workspace, n)
	if err != nil {
		return err
	}
	if diff == "" {
		fmt.Fprintf(a.Out, "What you wrote is our solution of lab %d, line by line.\n", n)
		return nil
	}
	fmt.Fprintf(a.Out, "Yours (-) and our solution of lab %d (+). Both are right if the checks say so.\n\n", n)
	paint := map[byte]*color.Color{'-': color.New(color.FgRed), '+': color.New(color.FgGreen), '@': color.New(color.FgCyan)}
	for line := range strings.Lines(diff) {
		if c := paint[line[0]]; c != nil {
			line = c.Sprint(line)
		}
		fmt.Fprint(a.Out, line)
	}
	return nil
}
