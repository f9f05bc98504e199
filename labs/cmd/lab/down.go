package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
)

// newDownCommand is `lab down`.
func newDownCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove everything that this checkout still runs",
		Long: `Remove everything that this checkout still runs, and say what.

Clusters that another command is using right now stay, and so do those of a classroom, which classroom down
removes; with --all both go. Nothing that this checkout did not start is ever removed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove clusters that running commands are using, and those of the classroom")
	return cmd
}

func (a *app) down(ctx context.Context, all bool) error {
	owners, err := a.Owners(ctx)
	errs := []error{err}
	for _, owner := range owners {
		switch {
		case ofRoom(owner) && !all:
			fmt.Fprintf(a.Out, "Left cluster %s of the classroom (make classroom-down removes it).\n", owner.Name)
			continue
		case !owner.Kept && owner.Alive() && !all:
			fmt.Fprintf(a.Out, "Left cluster %s: process %d is using it (lab down --all removes it all the same).\n", owner.Name, owner.PID)
			continue
		}
		owned, err := a.Owner(owner)
		if err == nil {
			err = owned.Delete(ctx, owner.Name)
		}
		if err == nil {
			fmt.Fprintf(a.Out, "Removed cluster %s.\n", owner.Name)
		}
		errs = append(errs, err)
	}
	if len(owners) == 0 && err == nil {
		fmt.Fprintln(a.Out, "Nothing was running.")
	}
	return errors.Join(errs...)
}

// deleteCluster deletes the cluster of a command that is at its end, or was interrupted.
func deleteCluster(ctx context.Context, owned *clusters.Manager, cluster *clusters.Cluster) error {
	return cli.Delete(ctx, owned, cluster)
}

// ofRoom says that learners work in the cluster. Whoever wants memory or disk back is told to make down, by the doctor
// and by verdicts, and does not mean their people's clusters.
func ofRoom(o clusters.Record) bool { return o.Kept && o.Label == cli.RoomLabel }
