package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newCheckCommand(a *app) *cobra.Command {
	var keep bool
	var seed int64
	var judgeImage string
	cmd := &cobra.Command{
		Use:   "check N|all",
		Short: "Judge step N on a fresh cluster (make lab-N)",
		Long: `check compiles the operator in the workspace, creates a fresh cluster, runs the checks of step N
against it and says which hold and, if one does not, why. The workspace is never written to.

check 0 is without code: it compares what you predict with what happens.

With "all" it judges every step up to the one that you are at.`,
		Args: cli.One("check N, such as check 4, or check all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == labZero {
				return a.predict(cmd.Context(), keep)
			}
			return a.check(cmd.Context(), args[0], seed, judgeImage, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the cluster running for a look at it; make down removes it")
	cmd.Flags().Int64Var(&seed, "seed", 0, "replay the names and sizes of an earlier run (default: drawn)")
	cmd.Flags().StringVar(&judgeImage, "judge-image", "", "for CLUSTER=hosted: the image that judges (default: that of the namespace's ConfigMap operator-lab)")
	return cmd
}

func (a *app) check(ctx context.Context, which string, seed int64, judgeImage string, keep bool) (err error) {
	switch {
	case keep && a.Cluster == cli.Hosted:
		return exit.Usage("KEEP=1: a cluster of CLUSTER=hosted goes after the verdict; CLUSTER=auto makes one that stays")
	case which == "all" && a.Cluster == cli.Hosted:
		return exit.Usage("a hosted verdict is about one step: make lab-N")
	}
	c, err := a.Course()
	if err != nil {
		return err
	}
	labs, err := a.labs(c, which)
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
		return a.checkHosted(ctx, c, judgeImage, hosted.Request{Lab: labs[0], Seed: seed})
	}
	a.Meanwhile = readMeanwhile(c.Labs[labs[0]-1])
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	// Only now: bad input that the engine finds out about changes nothing either.
	if err := a.ensure(ctx, c); err != nil {
		return err
	}
	judge := &verdict.Judge{
		Course: c, State: a.State, Cache: a.Cache, Workspace: a.workspace, Clusters: owned, NodeImage: image,
		Seed: seed, Keep: keep, Progress: a.Progress,
		OnOutcome: a.onOutcome(c),
		Answer: func(results []*verdict.Result, cluster *clusters.Cluster) {
			a.answer(c, results, cluster, keep)
			a.report(ctx, results)
		},
	}
	results, err := judge.Check(ctx, labs)
	if err != nil {
		return err
	}
	return verdict.Worst(results).Err()
}

// readMeanwhile is what whoever waits for a compilation can do.
func readMeanwhile(lab *course.Lab) string {
	return "meanwhile, read the lesson: " + lab.Dir + "/README.md"
}

// ensure makes a workspace that does not exist yet, and says so.
func (a *app) ensure(ctx context.Context, c *course.Course) error {
	created, err := workspace.Ensure(ctx, c, a.workspace)
	if created {
		a.Progress("made your workspace " + a.workspace + ": this is where you write your operator")
	}
	return err
}

// labs reads the argument: a number of the course, or all.
func (a *app) labs(c *course.Course, which string) ([]int, error) {
	if which != "all" {
		n, err := cli.LabNumber(c, which)
		return []int{n}, err
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return nil, err
	}
	passed := verdict.PassedLabs(events)
	var labs []int
	for _, lab := range c.Labs {
		labs = append(labs, lab.Number)
		if _, ok := passed[lab.Number]; !ok {
			break
		}
	}
	return labs, nil
}

// lab is the course, and the number of one of its labs.
func (a *app) lab(text string) (*course.Course, int, error) {
	c, err := a.Course()
	if err != nil {
		return nil, 0, err
	}
	n, err := cli.LabNumber(c, text)
	return c, n, err
}

// answer prints the results, and what to do next.
func (a *app) answer(c *course.Course, results []*verdict.Result, cluster *clusters.Cluster, keep bool) {
	for _, r := range results {
		lab := c.Labs[r.Lab-1]
		verdict.Print(a.Out, r, lab, c.Hint)
		a.next(c, r, lab)
	}
	if keep && cluster != nil {
		a.stays(cluster)
	}
}

// stays says how to reach a cluster that is kept.
func (a *app) stays(cluster *clusters.Cluster) {
	fmt.Fprintf(a.Out, "The cluster stays: export KUBECONFIG=%s; `make down` removes it.\n", cluster.Kubeconfig)
}

func (a *app) next(c *course.Course, r *verdict.Result, lab *course.Lab) {
	switch r.Verdict {
	case verdict.Fail:
		fmt.Fprintf(a.Out, "Write in %s; the lesson is %s/README.md\n", a.workspace, lab.Dir)
	case verdict.Pass:
		fmt.Fprintf(a.Out, "`make diff-%d%s` shows what our solution does differently.\n", r.Lab, a.workspaceArg())
		if r.Lab == len(c.Labs) {
			fmt.Fprintln(a.Out, "That was the last step: you have written a working operator.")
			return
		}
		fmt.Fprintf(a.Out, "Next: %s/README.md, then `make lab-%d`\n", c.Labs[r.Lab].Dir, r.Lab+1)
	}
}
