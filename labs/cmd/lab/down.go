package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
)

// removeLimit is how long a cluster may take to go, also after an interrupt.
const removeLimit = 90 * time.Second

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
	rooms, ended := 0, false
	for _, owner := range owners {
		if ofRoom(owner) && !all {
			rooms++
			continue
		}
		if inUse(owner) && !all {
			fmt.Fprintf(a.Out, "Left cluster %s: process %d is using it (lab down --all removes it all the same).\n",
				owner.Name, owner.PID)
			continue
		}
		if err := a.remove(ctx, owner); err != nil {
			errs = append(errs, err)
			continue
		}
		ended = ended || ofRoom(owner)
		fmt.Fprintf(a.Out, "Removed cluster %s.\n", owner.Name)
	}
	if rooms > 0 {
		fmt.Fprintf(a.Out, "Left %s of the classroom (make classroom-down removes the room).\n", cli.Count(rooms, "cluster"))
	}
	if ended {
		fmt.Fprintln(a.Out, "The classroom still has its learners: make classroom makes clusters for them again, make classroom-down forgets them.")
	}
	err = errors.Join(errs...)
	if len(owners) == 0 && err == nil {
		fmt.Fprintln(a.Out, "Nothing was running.")
	}
	return err
}

func (a *app) remove(ctx context.Context, owner clusters.Record) error {
	owned, err := a.Owner(owner)
	if err != nil {
		return err
	}
	return owned.Delete(ctx, owner.Name)
}

// deleteCluster deletes the cluster of a command that is at its end, or was interrupted.
func deleteCluster(ctx context.Context, owned *clusters.Manager, cluster *clusters.Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	return owned.Delete(ctx, cluster.Name)
}

// ofRoom says that learners work in the cluster. Whoever wants memory or disk back is told to make down, by the doctor
// and by verdicts, and does not mean their people's clusters.
func ofRoom(o clusters.Record) bool { return o.Kept && o.Label == cli.RoomLabel }

// inUse says that the process that made the cluster is at work with it.
func inUse(o clusters.Record) bool { return !o.Kept && o.Alive() }
