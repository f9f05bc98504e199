package main

import (
	"context"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/pool"
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
		a.Settle()
		unlock, err := a.lock()
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

// follow watches the workspace until ctx ends.
func (a *app) follow(ctx context.Context, c *course.Course, n int, check func(context.Context, int, func(*verdict.Result)) error) error {
	session := &watch.Session{
		Lab: n, Check: check,
		Report:  func(r *verdict.Result) { a.answer(c, []*verdict.Result{r}) },
		Changes: watch.Files(ctx, a.workspace),
		Out:     a.Out, Err: a.Err,
	}
	return session.Run(ctx)
}
