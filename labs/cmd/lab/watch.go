package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/watch"
)

func (a *app) watch(ctx context.Context, args []string) error {
	c, labs, err := a.labs(append(args, "all")[0])
	if err != nil {
		return err
	}
	unlock, err := a.lockPossible(c)
	if err != nil {
		return err
	}
	owned, image, err := a.Ready(ctx, 3) // one in use, one that waits, one that goes away
	if err == nil {
		err = a.ensure(ctx, c)
	}
	if unlock(); err != nil {
		return err
	}
	waiting := pool.Start(owned, pool.Options{Size: 1, Spec: a.Spec(owned, image), Progress: a.Progress}) // while the checks are compiled
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
	return a.follow(ctx, c, labs[len(labs)-1], func(ctx context.Context, lab int, answered func(*verdict.Result)) error {
		unlock, err := a.lockWhenFree(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		once := judge
		once.Answer = func(results []*verdict.Result, _ *clusters.Cluster) {
			answered(results[0])
			a.report(ctx, results)
		}
		_, err = once.Check(ctx, []int{lab})
		return err
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

// lockPeriod is how often to try for a lock that another command has. A solve or a reset has it for a moment.
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
