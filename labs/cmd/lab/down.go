package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/roster"
)

// newDownCommand is `lab down`.
func newDownCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove everything that this checkout still runs",
		Long: `Remove everything that this checkout still runs, and say what.

Clusters that another command is using right now stay, and so do those of a classroom, which lab classroom down
removes; with --all both go. Nothing that this checkout did not start is ever removed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove clusters that running commands are using, and those of the classroom")
	return cmd
}

func (a *app) down(ctx context.Context, all bool) error {
	owners, err := a.owners(ctx)
	errs := []error{err}
	rooms := 0
	for _, owner := range owners {
		if ofRoom(owner) && !all {
			rooms++
			continue
		}
		if inUse(owner) && !all {
			fmt.Fprintf(a.out, "Left cluster %s: process %d is using it (lab down --all removes it all the same).\n",
				owner.Name, owner.Process.PID)
			continue
		}
		if err := a.remove(ctx, owner); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.out, "Removed cluster %s.\n", owner.Name)
	}
	if rooms > 0 {
		fmt.Fprintf(a.out, "Left %s of the classroom (make classroom-down removes the room).\n", count(rooms, "cluster"))
	}
	errs = append(errs, a.forgetEmptyRoom(ctx))
	err = errors.Join(errs...)
	if len(owners) == 0 && err == nil {
		fmt.Fprintln(a.out, "Nothing was running.")
	}
	return err
}

func (a *app) remove(ctx context.Context, owner clusters.Owner) error {
	owned, err := a.owner(owner)
	if err != nil {
		return err
	}
	return owned.Delete(ctx, owner.Name)
}

// ofRoom says that learners work in the cluster. Whoever wants memory or disk back is told to make down, by the doctor
// and by verdicts, and does not mean their people's clusters.
func ofRoom(o clusters.Owner) bool { return o.Kept && o.Purpose == roster.Purpose }

// inUse says that the process that made the cluster is at work with it.
func inUse(o clusters.Owner) bool { return !o.Kept && o.Alive() }
