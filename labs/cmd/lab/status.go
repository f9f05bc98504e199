package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
)

// newStatusCommand is `lab status`.
func newStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the clusters and processes of this checkout",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

func (a *app) status(ctx context.Context) error {
	owners, err := a.Owners(ctx)
	if len(owners) == 0 {
		if err == nil {
			fmt.Fprintln(a.Out, "Nothing is running.")
		}
		return err
	}
	rows := [][]string{{"CLUSTER", "FOR", "AGE", "OWNER", "STATE"}}
	for _, owner := range owners {
		age := time.Since(owner.Created).Round(time.Second)
		rows = append(rows, []string{owner.Name, owner.Label, age.String(), ownerWord(owner), a.stateWord(ctx, owner)})
	}
	return errors.Join(err, plain.Table(a.Out, rows...))
}

func ownerWord(o clusters.Record) string {
	end := "make down"
	if ofRoom(o) {
		end = "make classroom-down"
	}
	switch {
	case o.Kept:
		return "kept until " + end
	case o.Alive():
		return fmt.Sprintf("process %d", o.PID)
	default:
		return "left behind; the next command removes it"
	}
}

// stateTimeout bounds the question how one cluster is: a list should not hang because a cluster does.
const stateTimeout = 10 * time.Second

func (a *app) stateWord(ctx context.Context, o clusters.Record) string {
	if o.Cluster == nil {
		return "being made"
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	if err := a.healthy(ctx, &o); err != nil {
		return plain.Line(err.Error())
	}
	return "ready, Kubernetes " + o.Cluster.Version
}
