package main

import (
	"context"
	"fmt"
	"time"

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
		a.Say("Created %s: %s.", plain.Path(a.workspace), state)
	case len(done.Paths) == 0:
		a.Say("%s is %s already; nothing was changed.", plain.Path(a.workspace), state)
	default:
		a.Say("%s is now %s (%s changed).", plain.Path(a.workspace), state, cli.Count(len(done.Paths), "file"))
		a.Say("Your work was saved first: `make undo%s` brings it back.", a.workspaceArg())
	}
	return nil
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
		a.Say("%s is %s already (saved %s); nothing was changed.", plain.Path(a.workspace), was, saved)
		return nil
	}
	a.Say("%s is again %s (saved %s; %s changed).", plain.Path(a.workspace), was, saved, cli.Count(len(done.Paths), "file"))
	if done.Saved > 0 {
		a.Say("What it was until now was saved first: `make undo%s` once more brings that back.", a.workspaceArg())
	}
	return nil
}
