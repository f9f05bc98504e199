package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// fits refuses a room that is too large for this machine, with the number that is not. before is how many learners
// were there already.
func (c *roomCommand) fits(
	ctx context.Context, r *roster.Room, owned *clusters.Owned, image nodeimage.Image, found []room.Cluster, before int,
) error {
	short, lendable, err := c.shortage(ctx, r, owned, image, found)
	if err != nil || len(short) == 0 {
		return err
	}
	fits := max(0, short[0].Fits-lendable)
	what := fmt.Sprintf("this machine has room for %d of %s", fits, cli.Count(len(found), "learner"))
	if r.LendsOnly {
		what = fmt.Sprintf("this machine has room for %d of the %s that are lent or wait", short[0].Fits, cli.Count(r.Borrowed(), "cluster"))
	}
	what += fmt.Sprintf(": not enough %s", short[0])
	if fix := short[0].Supply.Fix; fix != "" {
		what += ", of which there is more after " + fix
	}
	if c.force {
		c.Progress(what + "; going on all the same (FORCE=1)")
		return nil
	}
	return exit.Usage("%s; %s", what, c.ways(r, short[0], fits, before))
}

// shortage says what there is too little of for the clusters of the learners, and lendable ones beside them. Where
// nobody has asked for a number of those, the room lends fewer first.
func (c *roomCommand) shortage(
	ctx context.Context, r *roster.Room, owned *clusters.Owned, image nodeimage.Image, found []room.Cluster,
) (short []room.Shortage, lendable int, err error) {
	all, err := owned.Provider().List(ctx)
	if err != nil {
		return nil, 0, err
	}
	lent, err := c.lent(ctx)
	if err != nil {
		return nil, 0, err
	}
	supplies, cost, there := c.supplies(ctx, image), c.cost(image), population(all, found)
	var first []room.Shortage
	for wanted := r.Lend; ; {
		lendable = max(0, r.Borrowed()-lent) // those that are there take nothing more
		short = room.Fit(supplies, cost, there, len(found)+lendable)
		if first == nil {
			first = short
		}
		if len(short) > 0 && c.lendLess(r) {
			continue
		}
		if r.Lend < wanted {
			c.Progress(fmt.Sprintf("this machine has room to lend %s, and not %d: not enough %s", lends(r), wanted, first[0]))
		}
		return short, lendable, nil
	}
}

// ways out of a room that is too large. Nobody who is there is sent away, and what their clusters are made with stays.
func (c *roomCommand) ways(r *roster.Room, short room.Shortage, fits, before int) string {
	var ways []string
	if fits > before && !r.LendsOnly {
		ways = append(ways, fmt.Sprintf("N=%d fits", fits))
	}
	if r.Lend > 1 || r.Lend > 0 && !r.LendsOnly {
		ways = append(ways, "a smaller LEND takes less")
	}
	if before > 0 {
		ways = append(ways, endsRoom)
	} else if c.Cluster != cli.Embedded && room.EmbeddedCost()[short.Resource] < short.Each {
		ways = append(ways, "CLUSTER=embedded takes less")
	}
	return strings.Join(append(ways, "FORCE=1 tries it all the same"), ", ")
}

// cost is what one cluster of the room takes.
func (c *roomCommand) cost(image nodeimage.Image) room.Cost {
	if c.Cluster == cli.Embedded {
		return room.EmbeddedCost()
	}
	cost := room.KindCost()
	if !image.Local || image.Stale {
		cost[doctor.Disk] = room.CopyingDisk
	}
	return cost
}

func population(all []string, found []room.Cluster) room.Population {
	p := room.Population{Others: len(all)}
	for _, c := range found {
		if slices.Contains(all, c.Name) {
			p.Others--
		}
		switch c.State {
		case room.Missing:
		case room.Stopped:
			p.Stopped++
		default:
			p.Running++
		}
	}
	return p
}

// supplies asks this machine, and where the engine has another one, that.
func (a *app) supplies(ctx context.Context, image nodeimage.Image) map[doctor.Resource]doctor.Supply {
	return doctor.Supplies(ctx, doctor.Options{
		Engine: a.Engine(), Root: a.Root, NoEngine: a.Cluster == cli.Embedded,
		NodeImage: func(context.Context, string) (doctor.Image, error) { return doctor.Image{Ref: image.Ref}, nil },
	})
}
