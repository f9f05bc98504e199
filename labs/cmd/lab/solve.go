package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newSolveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "solve N",
		Short: "Save your work, then bring the workspace to the solution of lab N",
		Args:  cli.One("solve N"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.bring(cmd.Context(), "solve", args[0]) },
	}
}

func newResetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reset N",
		Short: "Save your work, then bring the workspace to the starter of lab N",
		Args:  cli.One("reset N"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.bring(cmd.Context(), "reset", args[0]) },
	}
}

// bring brings the workspace to the solution of a lab, or to its starter, which is the stage before.
func (a *app) bring(ctx context.Context, command, lab string) error {
	c, n, err := a.lab(lab)
	if err != nil {
		return err
	}
	unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	stage, state := n, fmt.Sprintf("the solution of lab %d", n)
	if command == "reset" {
		stage, state = n-1, fmt.Sprintf("the starter of lab %d", n)
	}
	done, err := workspace.Bring(ctx, c, a.workspace, stage, fmt.Sprintf("before %s %d", command, n))
	if err != nil {
		return err
	}
	switch {
	case done.Created:
		fmt.Fprintf(a.Out, "Created %s: %s.\n", a.workspaceName(), state)
	case len(done.Paths) == 0:
		fmt.Fprintf(a.Out, "%s is %s already; nothing was changed.\n", a.workspaceName(), state)
	default:
		fmt.Fprintf(a.Out, "%s is now %s (%s changed).\n", a.workspaceName(), state, cli.Count(len(done.Paths), "file"))
		fmt.Fprintf(a.Out, "Your work was saved first: `make undo%s` brings it back.\n", a.workspaceArg())
	}
	a.printRemoved(done.Removed)
	return nil
}

// printRemoved says that old saves are gone.
func (a *app) printRemoved(saves int) {
	if saves > 0 {
		fmt.Fprintf(a.Out, "The oldest %s had to go: all saves of a workspace together have at most 1 GiB.\n", cli.Count(saves, "save"))
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
