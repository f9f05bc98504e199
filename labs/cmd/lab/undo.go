package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newUndoCommand(a *app) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "undo [SAVE]",
		Short: "Bring back what the last solve, reset or undo replaced, or an earlier save",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || list && len(args) > 0 {
				return exit.Usage("too many arguments: use lab undo, lab undo SAVE or lab undo --list")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listSaves()
			}
			number := ""
			if len(args) == 1 {
				number = args[0]
			}
			return a.undo(cmd.Context(), number)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list what was saved")
	return cmd
}

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
		fmt.Fprintf(a.Out, "%s is %s already (saved %s); nothing was changed.\n", a.workspaceName(), was, saved)
		return nil
	}
	fmt.Fprintf(a.Out, "%s is again %s (saved %s; %s changed).\n", a.workspaceName(), was, saved, cli.Count(len(done.Paths), "file"))
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
		fmt.Fprintf(a.Out, "Nothing was saved yet: no command has changed %s.\n", a.workspaceName())
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
