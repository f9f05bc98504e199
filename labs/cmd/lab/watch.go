package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/watch"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// newWatchCommand is `lab watch`.
func newWatchCommand(a *app) *cobra.Command {
	var size int
	cmd := &cobra.Command{
		Use:   "watch [N]",
		Short: "Judge step N again on every save (make watch, make watch-N)",
		Long: `watch judges step N, and again whenever you save what its verdict depends on: a Go file, go.mod, a manifest. A newer
save gives up the check that is under way. Each check has a fresh cluster of its own; --pool says how many wait for
the next ones, paused.

Without N it is the first step that you have not passed. In a terminal, a line asks for more: h the next hint, n the next
step, once this one has passed, an empty one another check, q the end.`,
		Args: cli.Arguments(0, 1, "watch, or lab watch N, such as watch 4"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args, size) },
	}
	cmd.Flags().IntVar(&size, "pool", 1, "ready clusters that wait beside the one in use; 0 makes one when a check needs it")
	return cmd
}

func (a *app) watch(ctx context.Context, args []string, size int) (err error) {
	if size < 0 {
		return exit.Usage("POOL=%d is less than nothing: use 0 for no pool", size)
	}
	c, n, err := a.watched(args)
	if err != nil {
		return err
	}
	if err := workspace.Possible(c, a.workspace); err != nil {
		return err
	}
	a.Meanwhile = readMeanwhile(c.Labs[n-1])
	owned, image, err := a.Ready(ctx, size+2) // one in use, and one that goes away while the next is made
	if err != nil {
		return err
	}
	if err := a.ensureWorkspace(ctx, c); err != nil {
		return err
	}
	waiting := a.StartPool(owned, a.Spec(owned, image), size) // the first one is made while the checks are compiled
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

// watched is the lab to begin with.
func (a *app) watched(args []string) (*course.Course, int, error) {
	if len(args) == 1 {
		return a.lab(args[0])
	}
	c, err := a.Course()
	if err != nil {
		return nil, 0, err
	}
	labs, err := a.labs(c, "all")
	if err != nil {
		return nil, 0, err
	}
	return c, labs[len(labs)-1], nil
}

// ensureWorkspace makes a workspace that does not exist yet, while no other command does.
func (a *app) ensureWorkspace(ctx context.Context, c *course.Course) error {
	unlock, err := a.lockWhenFree(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return a.ensure(ctx, c)
}

// follow watches the workspace until the learner quits.
func (a *app) follow(ctx context.Context, c *course.Course, n int, check func(context.Context, int, func(*verdict.Result)) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	session := &watch.Session{
		Lab: n, Labs: len(c.Labs), Check: check,
		Report:  func(r *verdict.Result) { a.answer(c, []*verdict.Result{r}, nil, false) },
		Hint:    func(lab int) error { return a.hint(c, lab, false) },
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
	judge.OnOutcome = a.onOutcome(judge.Course)
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
	tick := time.NewTicker(lockPeriod)
	defer tick.Stop()
	for said := false; ; {
		unlock, err := a.lock()
		if !errors.Is(err, cli.ErrBusy) {
			return unlock, err
		}
		if !said {
			a.Progress("another lab command is working on " + a.workspace + "; this goes on when it ends")
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}
