package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func (a *app) progress(context.Context, []string) error {
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
		if e, ok := passed[lab.Number]; ok {
			mark, state = "✓", "passed "+minute(e.Time)
			if len(e.NotChecked) > 0 {
				state += ", without " + strings.Join(e.NotChecked, " and ")
			}
		}
		rows = append(rows, []string{fmt.Sprintf("%s lab %d", mark, lab.Number), lab.Title, state})
	}
	return plain.Table(a.Out, rows...)
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func newDiffCommand(a *app) *cobra.Command {
	var force bool
	cmd := cli.Command("diff N", `Where our solution of lab N differs from yours, after it passed (make diff-N)

Other ways are right, too, if the checks pass. As it shows the solution, it waits until lab N has passed in this workspace.`,
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.diff(ctx, args[0], force) })
	cmd.Flags().BoolVar(&force, "force", false, "show the solution before the lab has passed")
	return cmd
}

func (a *app) diff(ctx context.Context, lab string, force bool) error {
	c, n, err := a.lab(lab)
	if err != nil {
		return err
	}
	if _, err := os.Stat(a.workspace); err != nil {
		return exit.Usage("there is no workspace %s yet: make lab-1 makes one", a.workspace)
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return err
	}
	if _, passed := verdict.PassedLabs(events)[n]; !passed && !force {
		return exit.Usage("this shows the solution, and lab %d has not passed in %s yet: make lab-%d%s; make diff-%d FORCE=1%s shows it all the same",
			n, a.workspace, n, a.workspaceArg(), n, a.workspaceArg())
	}
	diff, err := c.Diff(ctx, a.workspace, n)
	if err != nil {
		return err
	}
	if diff == "" {
		fmt.Fprintf(a.Out, "What you wrote is our solution of lab %d, line by line.\n", n)
		return nil
	}
	fmt.Fprintf(a.Out, "Yours (-) and our solution of lab %d (+). Both are right if the checks say so.\n\n%s", n, diff)
	return nil
}
