package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/room"
	"github.com/example/operator-lab/labs/internal/exit"
)

// fits refuses a room that is too large for this machine, with the number that is not. before is how many learners
// were there already.
func (c *roomCommand) fits(
	ctx context.Context, owned *clusters.Owned, image nodeimage.Image, found []room.Cluster, before int,
) error {
	all, err := owned.Provider().List(ctx)
	if err != nil {
		return err
	}
	short := room.Fit(c.supplies(ctx, image), c.cost(image), population(all, found), len(found))
	if len(short) == 0 {
		return nil
	}
	what := fmt.Sprintf("this machine has room for %d of %s: not enough %s",
		short[0].Fits, count(len(found), "learner"), short[0])
	if mend := short[0].Supply.Mend; mend != "" {
		what += ", of which there is more after " + mend
	}
	if c.force {
		c.progress(what + "; going on all the same (FORCE=1)")
		return nil
	}
	return exit.Usage("%s; %s", what, c.ways(short[0].Fits, before))
}

// ways out of a room that is too large. Nobody who is there is sent away, and what their clusters are made with stays.
func (c *roomCommand) ways(fits, before int) string {
	var ways []string
	if fits > before {
		ways = append(ways, fmt.Sprintf("N=%d fits", fits))
	}
	if before > 0 {
		ways = append(ways, endsRoom)
	} else if c.cluster != onEmbedded {
		ways = append(ways, "CLUSTER=embedded takes less")
	}
	return strings.Join(append(ways, "FORCE=1 tries it all the same"), ", ")
}

// cost is what one cluster of the room takes.
func (c *roomCommand) cost(image nodeimage.Image) room.Cost {
	if c.cluster == onEmbedded {
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
		Engine: a.engine(), Root: a.root, NoEngine: a.cluster == onEmbedded,
		NodeImage: func(context.Context, string) (doctor.Image, error) { return doctor.Image{Ref: image.Ref}, nil },
	})
}
