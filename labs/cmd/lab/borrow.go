package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/borrow"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/outbox"
)

// readyToJudge gives what verdicts need: n clusters of this machine at the same time, or those that the room lends.
func (a *app) readyToJudge(ctx context.Context, n int) (*clusters.Owned, nodeimage.Image, error) {
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
	c, err := outbox.ReadConfig(a.State)
	if err != nil {
		return nil, exit.Usage("CLUSTER=room needs a handout, which names the room: source its env.sh, or use CLUSTER=auto (%v)", err)
	}
	provider := borrow.New(a.State, *c, borrow.Options{Progress: a.Progress, Instead: a.instead})
	return clusters.NewOwned(a.State, provider), nil
}

// judging is what a command asks of a cluster, for whoever has to wait for one.
type judging struct {
	command string // as the learner types it
	course  *course.Course
	labs    []int
}

// instead is what judges the same without the room, and what is different then.
func (a *app) instead() (command, difference string) {
	const without = "CLUSTER=embedded "
	if a.judges.command == "" {
		return without + "make lab-N", ""
	}
	command = without + a.judges.command
	switch n := a.judges.needPods(); n {
	case 0:
		return command, "all its checks run there, too"
	case 1:
		return command, "one check needs real Pods, and stays open there"
	default:
		return command, fmt.Sprintf("%d checks need real Pods, and stay open there", n)
	}
}

// needPods counts the checks that a cluster without real Pods cannot judge.
func (j judging) needPods() int {
	wanted := slices.Clone(j.labs)
	for _, lab := range j.course.Labs {
		if slices.Contains(j.labs, lab.Number) {
			wanted = append(wanted, lab.Reruns...)
		}
	}
	n := 0
	for _, lab := range j.course.Labs {
		for _, check := range lab.Checks {
			if slices.Contains(wanted, lab.Number) && check.NeedsPods() {
				n++
			}
		}
	}
	return n
}

// owner gives the clusters of the provider that made the recorded one.
func (a *app) owner(o clusters.Owner) (*clusters.Owned, error) {
	if borrow.Made(o.Provider) {
		return a.ownedRoom()
	}
	return a.Owner(o)
}
