package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/workspace"
)

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
		fmt.Fprintf(a.Out, "Created %s: %s.\n", a.workspace, state)
	case len(done.Paths) == 0:
		fmt.Fprintf(a.Out, "%s is %s already; nothing was changed.\n", a.workspace, state)
	default:
		fmt.Fprintf(a.Out, "%s is now %s (%s changed).\n", a.workspace, state, cli.Count(len(done.Paths), "file"))
		fmt.Fprintf(a.Out, "Your work was saved first: `make undo%s` brings it back.\n", a.workspaceArg())
	}
	a.printRemoved(done.Removed)
	return nil
}

// printRemoved says that old saves are gone.
func (a *app) printRemoved(saves int) {
	if saves > 0 {
		fmt.Fprintf(a.Out, "The oldest %s had to go: a workspace keeps %d.\n", cli.Count(saves, "save"), workspace.KeptSaves)
	}
}

func newUndoCommand(a *app) *cobra.Command {
	var list bool
	cmd := cli.Command("undo [SAVE]", "Bring back what the last solve, reset or undo replaced, or an earlier save",
		cobra.MaximumNArgs(1),
		func(ctx context.Context, args []string) error {
			if list {
				return a.listSaves()
			}
			return a.undo(ctx, append(args, "")[0])
		})
	cmd.Flags().BoolVar(&list, "list", false, "list what was saved")
	return cmd
}

// undo brings back a save, "" for the last one.
func (a *app) undo(ctx context.Context, number string) error {
	unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	c, err := a.Course()
	if err != nil {
		return err
	}
	done, err := workspace.Restore(ctx, c, a.workspace, number)
	if err != nil {
		return err
	}
	was, saved := "what it was "+done.Restored.Reason, done.Restored.Time.Local().Format(time.DateTime)
	if len(done.Paths) == 0 {
		fmt.Fprintf(a.Out, "%s is %s already (saved %s); nothing was changed.\n", a.workspace, was, saved)
		return nil
	}
	fmt.Fprintf(a.Out, "%s is again %s (saved %s; %s changed).\n", a.workspace, was, saved, cli.Count(len(done.Paths), "file"))
	if done.Saved > 0 {
		fmt.Fprintf(a.Out, "What it was until now was saved first: `make undo%s` once more brings that back.\n", a.workspaceArg())
	}
	a.printRemoved(done.Removed)
	return nil
}

func (a *app) listSaves() error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	saves, err := workspace.Saves(c, a.workspace)
	if err != nil {
		return err
	}
	if len(saves) == 0 {
		fmt.Fprintf(a.Out, "Nothing was saved yet: no command has changed %s.\n", a.workspace)
		return nil
	}
	rows := [][]string{{"SAVE", "WHEN", "WHAT"}}
	for _, s := range saves {
		rows = append(rows, []string{strconv.Itoa(s.Number), s.Time.Local().Format(time.DateTime), s.Reason})
	}
	err = plain.Table(a.Out, rows...)
	fmt.Fprintf(a.Out, "\n`make undo SAVE=number%s` brings one of them back; what is there now is saved first.\n", a.workspaceArg())
	return err
}
