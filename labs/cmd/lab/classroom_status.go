package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/exit"
)

// owned gives the clusters of the chosen provider without setting anything up.
func (a *app) owned() (*clusters.Owned, error) {
	if a.cluster != onEmbedded {
		return a.ownedKind()
	}
	owned, _, err := a.ownedEmbedded()
	return owned, err
}

func (c *roomCommand) status(ctx context.Context) error {
	r, err := roster.Load(c.state)
	if err != nil {
		return err
	}
	if len(r.Learners) == 0 {
		fmt.Fprintln(c.out, "Nobody is in the room: make classroom N=12 makes clusters for twelve.")
		return nil
	}
	if r.LendsOnly {
		fmt.Fprintf(c.out, "In the room, without clusters of their own: %s.\nIt lends %s, while make classroom-serve runs.\n",
			names(r.Learners), lends(r))
		return nil
	}
	c.cluster = r.Provider
	owned, err := c.open()
	if err != nil {
		return err
	}
	found, unknown := room.New(owned, room.Options{Healthy: c.healthy}).Look(ctx, r.Clusters())
	if err := ctx.Err(); err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
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
		return fmt.Sprintf("%s (%s): make classroom mends it", c.State, finding(c.Err))
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
	config, err := clusters.RESTConfig(clusters.Kubeconfig(c.state, l.Cluster))
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
	r, err := roster.Load(c.state)
	if err != nil {
		return err
	}
	owners, err := c.roomsClusters(ctx)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		fmt.Fprintln(c.out, "No cluster of a room is running.")
		return roster.Forget(c.state)
	}
	what := count(len(owners), "cluster")
	if err := c.agree(c.terminal(), "This removes "+what+", and all that the learners have in there.", "nothing was removed"); err != nil {
		return err
	}
	if err := c.removeAll(ctx, r, owners); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Removed %s. Nothing is left of the room.\n", what)
	return roster.Forget(c.state)
}

// roomsClusters are the records of all clusters of the room, whoever is in there now.
func (c *roomCommand) roomsClusters(ctx context.Context) ([]clusters.Owner, error) {
	owners, err := c.owners(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(owners, func(o clusters.Owner) bool { return o.Purpose != roster.Purpose }), nil
}

func (c *roomCommand) removeAll(ctx context.Context, r *roster.Room, owners []clusters.Owner) error {
	var errs []error
	for _, provider := range []string{onKind, onEmbedded} {
		var mine []string
		for _, o := range owners {
			if (o.Provider == embedded.Identity) == (provider == onEmbedded) {
				mine = append(mine, o.Name)
			}
		}
		if len(mine) == 0 {
			continue
		}
		c.cluster = provider
		owned, err := c.open()
		if err == nil {
			err = room.New(owned, room.Options{Progress: c.tellSteps(r)}).Down(ctx, mine)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// agree asks whoever sits at the terminal. Who gave consent in advance is not asked, and a script has been told.
// otherwise says what has not happened then.
func (a *app) agree(terminal bool, what, otherwise string) error {
	if a.yes || !terminal {
		return nil
	}
	fmt.Fprint(a.err, what+" Go on? [y/N] ")
	line, _ := bufio.NewReader(a.in).ReadString('\n') // the end of the input is no yes
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return exit.Usage("%s, because the answer was not yes", otherwise)
}

func (a *app) atTerminal() bool {
	file, ok := a.in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// forgetEmptyRoom forgets who was in the room when the last of its clusters is gone. While another command works on
// the room, that is its business.
func (a *app) forgetEmptyRoom(ctx context.Context) error {
	if _, err := os.Stat(roster.Dir(a.state)); err != nil {
		return nil // there is no room
	}
	unlock, err := a.lockRoom()
	if err != nil {
		return nil // it is somebody's
	}
	defer unlock()
	left, err := newRoom(a).roomsClusters(ctx)
	if err != nil || len(left) > 0 {
		return err
	}
	if r, err := roster.Load(a.state); err != nil || r.LendsOnly {
		return err // it never had any
	}
	return roster.Forget(a.state)
}
