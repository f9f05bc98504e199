package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newCheckCommand(a *app) *cobra.Command {
	var keep bool
	var seed int64
	cmd := cli.Command("check [N|all]", `Judge lab N on a fresh cluster (make lab, make lab-N)

It compiles the operator in the workspace, creates a fresh cluster, runs the checks of lab N against it and says which hold and, if one does
not, why. Your files are never changed. check 0 is without code: it compares what you predict with what happens. With "all" it judges
every lab up to the first that you have not passed.`, cobra.MaximumNArgs(1),
		choose(func(ctx context.Context, args []string) error { return a.check(ctx, args, seed, keep) }, a.predict, nil))
	cmd.Flags().StringVar(&a.format, "format", verdict.Text, "what to print: text, json (a document for each lab), gcc (lines for an editor), junit (for a CI service)")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the cluster running for a look at it; make down removes it")
	cmd.Flags().Int64Var(&seed, "seed", 0, "replay the names and sizes of an earlier run (default: drawn)")
	return cmd
}

func (a *app) check(ctx context.Context, which []string, seed int64, keep bool) error {
	if !slices.Contains([]string{verdict.Text, verdict.JSON, verdict.GCC, verdict.JUnit}, a.format) {
		return exit.Usage("FORMAT=%s is not known: use text, json, gcc or junit", a.format)
	}
	if a.Cluster == cli.Hosted && (keep || slices.Equal(which, []string{"all"})) {
		return exit.Usage("CLUSTER=hosted judges one lab, and leaves no cluster: make lab-N without KEEP=1")
	}
	c, labs, err := a.labs(which...)
	if err != nil {
		return err
	}
	unlock, err := a.lockPossible(c)
	if err != nil {
		return err
	}
	defer unlock()
	if a.Cluster == cli.Hosted {
		if err := a.ensure(ctx, c); err != nil {
			return err
		}
		return a.checkHosted(ctx, c, hosted.Request{Lab: labs[0], Seed: seed})
	}
	a.Notice(fmt.Sprintf("judging lab %d; its lesson is %s/README.md", labs[len(labs)-1], c.Labs[labs[len(labs)-1]-1].Dir))
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	// Only now: a node image that Ready refuses must not leave a new workspace behind.
	if err := a.ensure(ctx, c); err != nil {
		return err
	}
	judge := &verdict.Judge{
		Course: c, State: a.State, Cache: a.Cache, Workspace: a.workspace, Clusters: owned, NodeImage: image,
		Seed: seed, Keep: keep, Progress: a.Progress,
		Answer: func(results []*verdict.Result, cluster *clusters.Cluster) {
			a.answer(c, results)
			if keep && cluster != nil {
				a.Notice("the cluster stays, `make down` removes it: export KUBECONFIG=" + cluster.Kubeconfig)
			}
			a.report(ctx, results)
		},
	}
	results, err := judge.Check(ctx, labs)
	if err != nil {
		return err
	}
	return cli.Told(verdict.Worst(results))
}

// checkHosted has a Pod of the kubeconfig's cluster judge.
func (a *app) checkHosted(ctx context.Context, c *course.Course, q hosted.Request) error {
	judges, where, err := hosted.Connect(ctx)
	if err != nil {
		return exit.Usage("CLUSTER=hosted: %v", err)
	}
	a.Progress("a Job in " + where + " judges")
	judges.Progress = a.Progress
	result, err := judges.Check(ctx, a.workspace, q)
	if err != nil {
		return err
	}
	results := []*verdict.Result{result}
	if err := verdict.Keep(a.State, results); err != nil {
		return err
	}
	a.answer(c, results)
	a.report(ctx, results)
	return cli.Told(result.Verdict)
}

// labs reads the argument: the number of a lab, or all, which means the labs up to the first that has not passed. Without one it is the
// lab of the last verdict.
func (a *app) labs(which ...string) (c *course.Course, labs []int, err error) {
	if !slices.Equal(which, []string{"all"}) {
		c, n, err := a.lab(which...)
		if err == nil && a.Cluster == cli.Auto && c.Labs[n-1].Has(course.SetupWebhooks) {
			a.Cluster = cli.Embedded // an API server in a container reaches no webhook on this machine
		}
		return c, []int{n}, err
	}
	if c, err = a.Course(); err != nil {
		return nil, nil, err
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return nil, nil, err
	}
	passed := verdict.PassedLabs(events)
	for _, lab := range c.Labs {
		labs = append(labs, lab.Number)
		if _, ok := passed[lab.Number]; !ok {
			break
		}
	}
	return c, labs, nil
}

// report sends results to the board of the classroom that was joined, if one was.
func (a *app) report(ctx context.Context, results []*verdict.Result) {
	if err := roomclient.Report(ctx, a.State, results); err != nil {
		a.Notice(err.Error())
	}
}

// answer prints the results, and what to do next. In a format for programs it prints nothing else.
func (a *app) answer(c *course.Course, results []*verdict.Result) {
	a.Settle()
	switch a.format {
	case verdict.JSON, verdict.GCC, verdict.JUnit:
		if err := verdict.Format(a.Out, a.format, results, c); err != nil {
			a.Notice(err.Error())
		}
		return
	}
	for _, r := range results {
		lab := c.Labs[r.Lab-1]
		verdict.Print(a.Out, r, lab, c.Hint)
		switch r.Verdict {
		case verdict.Fail:
			a.Say("Write in %s; the lesson is %s/README.md", plain.Path(a.workspace), lab.Dir)
		case verdict.Pass:
			next := "That was the last lab: you have written a working operator."
			if r.Lab < len(c.Labs) {
				next = fmt.Sprintf("Next: %s/README.md, then `make lab-%d`", c.Labs[r.Lab].Dir, r.Lab+1)
			}
			a.Say("`make diff-%d%s` shows what our solution does differently.\n%s", r.Lab, a.workspaceArg(), next)
		}
	}
}
