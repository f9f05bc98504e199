package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newDiffCommand(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "diff N",
		Short: "Where our solution of step N differs from yours, after it passed (make diff-N)",
		Long: `diff compares what you wrote with our solution of step N.
Other ways are right, too: the checks are the measure, not this.

As it shows the solution, it waits until step N has passed in this workspace.`,
		Args: cli.One("diff N, such as diff 4"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, n, err := a.lab(args[0])
			if err != nil {
				return err
			}
			return a.diff(cmd.Context(), c, n, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "show the solution before the step has passed")
	return cmd
}

func (a *app) diff(ctx context.Context, c *course.Course, n int, force bool) error {
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
