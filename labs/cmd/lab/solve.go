package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newSolveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "solve N",
		Short: "Save your work, then bring the workspace to the solution of lab N",
		Args:  cli.One("solve N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bring(cmd.Context(), args[0], "the solution of lab %d", workspace.Solve)
		},
	}
}

func newResetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reset N",
		Short: "Save your work, then bring the workspace to the starter of lab N",
		Args:  cli.One("reset N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bring(cmd.Context(), args[0], "the starter of lab %d", workspace.Reset)
		},
	}
}

// bring does what solve and reset have in common. state says, with %d for the lab, what the workspace
// becomes.
func (a *app) bring(ctx context.Context, lab, state string,
	change func(context.Context, *course.Course, string, int) (workspace.Change, error),
) error {
	c, n, err := a.lab(lab)
	if err != nil {
		return err
	}
	unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	done, err := change(ctx, c, a.workspace, n)
	if err != nil {
		return err
	}
	a.printChange(done, fmt.Sprintf(state, n))
	return nil
}

// printChange says what became of the workspace, and how to get back what it was.
func (a *app) printChange(c workspace.Change, state string) {
	switch {
	case c.Created:
		fmt.Fprintf(a.Out, "Created %s: %s.\n", a.workspaceName(), state)
	case len(c.Paths) == 0:
		fmt.Fprintf(a.Out, "%s is %s already; nothing was changed.\n", a.workspaceName(), state)
	default:
		fmt.Fprintf(a.Out, "%s is now %s (%s changed).\n", a.workspaceName(), state, cli.Count(len(c.Paths), "file"))
		fmt.Fprintf(a.Out, "Your work was saved first: `make undo%s` brings it back.\n", a.workspaceArg())
		a.printRemoved(c)
	}
}

// printRemoved says which saves are gone.
func (a *app) printRemoved(c workspace.Change) {
	if c.Removed > 0 {
		fmt.Fprintf(a.Out, "(The oldest %s had to go: all saves of a workspace together have at most 1 GiB.)\n", cli.Count(c.Removed, "save"))
	}
}

// workspaceName is the workspace as a person calls it: without the way to the checkout.
func (a *app) workspaceName() string {
	if rel, err := filepath.Rel(a.Root, a.workspace); err == nil && filepath.IsLocal(rel) {
		return rel + string(filepath.Separator)
	}
	return a.workspace
}

// workspaceArg is what a make target needs to mean the same workspace again.
func (a *app) workspaceArg() string {
	if a.workspace == filepath.Join(a.Root, "workspace") {
		return ""
	}
	return " WORKSPACE=" + a.workspace
}
