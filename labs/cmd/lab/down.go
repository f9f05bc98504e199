package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
)

// newDownCommand is `lab down`.
func newDownCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove everything that this checkout still runs",
		Long: `Remove everything that this checkout still runs, and say what.

Clusters that another command is using right now stay, unless --all is given. Nothing that this checkout did
not start is ever removed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove clusters that running commands are using")
	return cmd
}

func (a *app) down(ctx context.Context, all bool) error {
	owned, err := a.owned()
	if err != nil {
		return err
	}
	owners, err := owned.List(ctx)
	errs := []error{err}
	for _, owner := range owners {
		if inUse(owner) && !all {
			fmt.Fprintf(a.out, "Left cluster %s: process %d is using it (lab down --all removes it all the same).\n",
				owner.Name, owner.Process.PID)
			continue
		}
		if err := owned.Delete(ctx, owner.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.out, "Removed cluster %s.\n", owner.Name)
	}
	err = errors.Join(errs...)
	if len(owners) == 0 && err == nil {
		fmt.Fprintln(a.out, "Nothing was running.")
	}
	return err
}

// inUse says that the process that made the cluster is at work with it.
func inUse(o clusters.Owner) bool { return !o.Kept && o.Alive() }
