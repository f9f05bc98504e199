package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

func (c *roomCommand) status(ctx context.Context) error {
	r, err := roster.Load(c.State)
	if err != nil {
		return err
	}
	if len(r.Learners) == 0 {
		fmt.Fprintln(c.Out, "Nobody is in the room: make classroom N=12 makes clusters for twelve.")
		return nil
	}
	if r.LendsOnly {
		fmt.Fprintf(c.Out, "In the room, without clusters of their own: %s.\nIt lends %s, while make classroom-serve runs.\n",
			names(r.Learners), lends(r))
		return nil
	}
	c.Cluster = r.Provider
	owned, err := c.open()
	if err != nil {
		return err
	}
	found, unknown := room.New(owned, room.Options{Healthy: c.healthy}).Look(ctx, r.Clusters())
	if err := ctx.Err(); err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LEARNER\tCLUSTER\tSTATE\tAPI SERVER")
	for i, l := range r.Learners {
		state := "not known: "
		if unknown != nil {
			state += firstLine(unknown)
		} else {
			state = clusterState(found[i])
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", l.Name, l.Cluster, state, c.apiServer(l))
	}
	return table.Flush()
}

func clusterState(c room.Cluster) string {
	switch c.State {
	case room.Healthy:
		return "ready, Kubernetes " + c.Owner.Cluster.Version
	case room.Missing:
		return "missing: make classroom makes it"
	case room.Making:
		return "being made"
	default:
		return fmt.Sprintf("%s (%s): make classroom fixes it", c.State, finding(c.Err))
	}
}

// finding is what is wrong, without the command that is for another kind of cluster.
func finding(err error) string {
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		err = errors.New(p.Finding())
	}
	return firstLine(err)
}

// apiServer is where the learner's API server answers, "-" while there is none.
func (c *roomCommand) apiServer(l roster.Learner) string {
	config, err := clusters.RESTConfig(clusters.Kubeconfig(c.State, l.Cluster))
	if err != nil {
		return "-"
	}
	return config.Host
}

func (c *roomCommand) down(ctx context.Context) error {
	unlock, err := c.lockRoom()
	if err != nil {
		return err
	}
	defer unlock()
	unlockServer, err := c.lockServer() // which lends clusters of the room
	if err != nil {
		return err
	}
	defer unlockServer()
	r, err := roster.Load(c.State)
	if err != nil {
		return err
	}
	owners, err := c.roomsClusters(ctx, r)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		fmt.Fprintln(c.Out, "No cluster of a room is running.")
		if len(r.Learners) == 0 { // tokens are of no room, but of a board
			return roster.Forget(c.State)
		}
		return c.forget(ctx)
	}
	what := cli.Count(len(owners), "cluster")
	if err := c.Agree(c.terminal(), "This removes "+what+", and all that the learners have in there.", "nothing was removed"); err != nil {
		return err
	}
	if err := c.removeAll(ctx, r, owners); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "Removed %s.\n", what)
	return c.forget(ctx)
}

// forget leaves nothing of the room. The next one may have learners of the same names, so the tokens of this one end.
func (c *roomCommand) forget(ctx context.Context) error {
	dir := filepath.Join(c.State, boardDir)
	if _, err := os.Stat(filepath.Join(dir, store.FileName)); err == nil {
		s, err := store.Open(ctx, dir)
		if err != nil {
			return exit.Environment(err)
		}
		ended, err := s.RevokeLearners(ctx)
		if err := errors.Join(err, s.Close()); err != nil {
			return exit.Environment(err)
		}
		if ended > 0 {
			fmt.Fprintf(c.Out, "Ended %s in handouts.\n", cli.Count(ended, "token"))
		}
	}
	return roster.Forget(c.State)
}

// roomsClusters are the records of all clusters of the room, whoever is in there now, and of those that a server of the room
// lent and could not remove, since something ended it.
func (c *roomCommand) roomsClusters(ctx context.Context, r *roster.Room) ([]clusters.Owner, error) {
	owners, err := c.Owners(ctx)
	if err != nil {
		return nil, err
	}
	lent := func(o clusters.Owner) bool {
		return r.Lend > 0 && o.Purpose == pool.Purpose && o.Abandoned() && !borrow.Made(o.Provider)
	}
	return slices.DeleteFunc(owners, func(o clusters.Owner) bool { return o.Purpose != cli.RoomPurpose && !lent(o) }), nil
}

func (c *roomCommand) removeAll(ctx context.Context, r *roster.Room, owners []clusters.Owner) error {
	var errs []error
	for _, provider := range []string{cli.Kind, cli.Embedded} {
		var mine []string
		for _, o := range owners {
			if (o.Provider == embedded.Identity) == (provider == cli.Embedded) {
				mine = append(mine, o.Name)
			}
		}
		if len(mine) == 0 {
			continue
		}
		c.Cluster = provider
		owned, err := c.open()
		if err == nil {
			err = room.New(owned, room.Options{Progress: c.reportSteps(r)}).Down(ctx, mine)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
