package main

import (
	"cmp"
	"context"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

// readyToJudge gives what verdicts about a lab need: n clusters of this machine at the same time, or those that the room
// lends.
func (a *app) readyToJudge(ctx context.Context, lab *course.Lab, n int) (*clusters.Owned, nodeimage.Image, error) {
	a.Meanwhile = "meanwhile, read the lesson: " + lab.Dir + "/README.md"
	if a.Cluster != cli.Room {
		return a.Ready(ctx, n)
	}
	owned, err := a.ownedRoom()
	if err != nil {
		return nil, nodeimage.Image{}, err
	}
	a.Sweep(ctx, owned)
	return owned, nodeimage.Image{}, ctx.Err()
}

// ownedRoom gives the clusters that the room of this learner's handout lends.
func (a *app) ownedRoom() (*clusters.Owned, error) {
	c, err := roomclient.ReadConfig(a.State)
	if err != nil {
		return nil, exit.Usage("CLUSTER=room needs a handout, which names the room: source its env.sh, or use CLUSTER=auto (%v)", err)
	}
	provider := borrow.New(a.State, *c, borrow.Options{Progress: a.Progress, Instead: a.instead})
	return clusters.NewOwned(a.State, provider), nil
}

// instead is what judges the same without the room, and what is different then.
func (a *app) instead() (command, difference string) {
	return "CLUSTER=embedded " + cmp.Or(a.asked, "make lab-N"), "checks that need real Pods stay open there"
}

// owner gives the clusters of the provider that made the recorded one.
func (a *app) owner(o clusters.Owner) (*clusters.Owned, error) {
	if borrow.Made(o.Provider) {
		return a.ownedRoom()
	}
	return a.Owner(o)
}
