package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/watch"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newWatchCommand(a *app) *cobra.Command {
	var size int
	cmd := command("watch [N]", `Judge step N again on every save (make watch, make watch-N)

A save counts if it changes what the verdict depends on: a Go file, go.mod, a manifest. It gives up the check that is under way. Each check
has a fresh cluster of its own; --pool says how many wait for the next ones, paused. Without N it is the first step that you have not passed.
In a terminal, a line asks for more: h the next hint, n the next step, an empty one another check, q the end.`,
		cobra.MaximumNArgs(1),
		func(ctx context.Context, args []string) error { return a.watch(ctx, append(args, "all")[0], size) })
	cmd.Flags().IntVar(&size, "pool", 1, "ready clusters that wait beside the one in use; 0 makes one when a check needs it")
	return cmd
}

func (a *app) watch(ctx context.Context, lab string, size int) (err error) {
	if size < 0 {
		return exit.Usage("POOL=%d is less than nothing: use 0 for no pool", size)
	}
	c, labs, err := a.labs(lab)
	if err != nil {
		return err
	}
	n := labs[len(labs)-1]
	if err := workspace.Possible(c, a.workspace); err != nil {
		return err
	}
	a.Meanwhile = readMeanwhile(c.Labs[n-1])
	owned, image, err := a.Ready(ctx, size+2) // one in use, and one that goes away while the next is made
	if err != nil {
		return err
	}
	unlock, err := a.lockWhenFree(ctx)
	if err != nil {
		return err
	}
	err = a.ensure(ctx, c)
	if unlock(); err != nil {
		return err
	}
	waiting := pool.Start(owned, pool.Options{Size: size, Spec: a.Spec(owned, image), Progress: a.Progress}) // while the checks are compiled
	defer waiting.Close()
	a.Progress("compiling the checks")
	tools, err := verdict.BuildTools(ctx, c.Root, a.State)
	if err != nil {
		return err
	}
	judge := verdict.Judge{
		Course: c, State: a.State, Cache: a.Cache, Workspace: a.workspace, Clusters: owned, NodeImage: image,
		Pool: waiting, Tools: tools, Progress: a.Progress,
	}
	return a.follow(ctx, c, n, func(ctx context.Context, lab int, answered func(*verdict.Result)) error {
		return a.checkOnce(ctx, judge, lab, answered)
	})
}

// follow watches the workspace until the learner quits.
func (a *app) follow(ctx context.Context, c *course.Course, n int, check func(context.Context, int, func(*verdict.Result)) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	session := &watch.Session{
		Lab: n, Labs: len(c.Labs), Check: check,
		Report:  func(r *verdict.Result) { a.answer(c, []*verdict.Result{r}) },
		Hint:    func(lab int) error { return a.hint(strconv.Itoa(lab)) },
		Changes: watch.Files(ctx, a.workspace),
		Out:     a.Out, Err: a.Err,
	}
	if a.AtTerminal() {
		session.Lines = watch.Lines(a.In)
	}
	return session.Run(ctx)
}

// checkOnce judges one lab as `lab check` does, when no other command works on the workspace. judge is a copy, because a
// run draws its seed.
func (a *app) checkOnce(ctx context.Context, judge verdict.Judge, lab int, answered func(*verdict.Result)) error {
	unlock, err := a.lockWhenFree(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	judge.Answer = func(results []*verdict.Result, _ *clusters.Cluster) {
		answered(results[0])
		a.report(ctx, results)
	}
	_, err = judge.Check(ctx, []int{lab})
	return err
}

// lockPeriod is how often it is tried to get a lock that another command has. It ends unseen: a solve or a reset
// takes a moment, and its changes are what is checked next.
const lockPeriod = 200 * time.Millisecond

// lockWhenFree waits for the end of another command that works on the workspace, and says so in one line.
func (a *app) lockWhenFree(ctx context.Context) (unlock func(), err error) {
	unlock, err = a.lock()
	if errors.Is(err, cli.ErrBusy) {
		a.Progress("another lab command is working on " + a.workspace + "; this goes on when it ends")
	}
	for errors.Is(err, cli.ErrBusy) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPeriod):
			unlock, err = a.lock()
		}
	}
	return unlock, err
}
