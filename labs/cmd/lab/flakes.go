package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// flakes is what `lab flakes` was asked for.
type flakes struct {
	runs  int
	fresh bool
	labs  []string
}

func newFlakesCommand(a *app) *cobra.Command {
	var f flakes
	cmd := &cobra.Command{
		Use:   "flakes [LAB...]",
		Short: "For authors: every suite on its solution, many times in a row (make flakes)",
		Long: `flakes judges the solution of each lab again and again, with checks in another order and other names each time.
A right answer that fails once in twenty runs has a check that is not right.

It makes one cluster for each lab and judges all runs on it, which is cheap and hard on the checks: what one run
leaves is there in the next. With --fresh every run gets a cluster of its own, as learners have it.`,
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.labs = args
			return a.flakes(cmd.Context(), f)
		},
	}
	cmd.Flags().IntVar(&f.runs, "runs", 20, "how often each suite runs")
	cmd.Flags().BoolVar(&f.fresh, "fresh", false, "a fresh cluster for every run")
	return cmd
}

func (a *app) flakes(ctx context.Context, f flakes) error {
	c, err := a.course()
	if err != nil {
		return err
	}
	if f.runs < 1 {
		return exit.Usage("N=%d: at least one run", f.runs)
	}
	labs, err := someLabs(c, f.labs)
	if err != nil {
		return err
	}
	judge, err := a.authorsJudge(ctx, c, "flakes")
	if err != nil {
		return err
	}
	flaky, runs := 0, 0
	for _, n := range labs {
		record, err := a.repeat(ctx, *judge, n, f)
		flaky, runs = flaky+record.failed, runs+len(record.seconds)
		if len(record.seconds) > 0 {
			fmt.Fprintf(a.out, "lab %d: %d runs, %d failed; %s s\n", n, len(record.seconds), record.failed, spread(record.seconds))
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "%d runs of %d suites, %d failed\n", runs, len(labs), flaky)
	if flaky > 0 {
		return exit.ErrFail
	}
	return nil
}

// someLabs are the labs that were named, or all of them.
func someLabs(c *course.Course, named []string) ([]int, error) {
	var labs []int
	for _, text := range named {
		n, err := labNumber(c, text)
		if err != nil {
			return nil, err
		}
		labs = append(labs, n)
	}
	if len(named) == 0 {
		for _, lab := range c.Labs {
			labs = append(labs, lab.Number)
		}
	}
	return labs, nil
}

// tries is what became of the runs of one suite.
type tries struct {
	failed  int
	seconds []float64
}

// repeat judges the solution of lab n again and again.
func (a *app) repeat(ctx context.Context, judge verdict.Judge, n int, f flakes) (record tries, err error) {
	solution, remove, err := renderAside(judge.Course, n)
	if err != nil {
		return record, err
	}
	defer remove()
	judge.Workspace = solution
	if !f.fresh {
		cluster, remove, err := a.lend(ctx, &judge)
		if err != nil {
			return record, err
		}
		defer remove()
		judge.Cluster = cluster
	}
	for i := range f.runs {
		judge.Seed = 0 // drawn anew
		started := time.Now()
		results, err := judge.Check(ctx, []int{n})
		if err != nil {
			return record, err
		}
		took := time.Since(started)
		record.seconds = append(record.seconds, took.Seconds())
		a.progress(fmt.Sprintf("lab %d, run %d of %d: %s, %s", n, i+1, f.runs, results[0].Verdict, took.Round(time.Second)))
		if results[0].Verdict != verdict.Pass {
			record.failed++
			a.tellFlake(results[0])
		}
	}
	return record, nil
}

// lend makes a cluster for all runs of a suite.
func (a *app) lend(ctx context.Context, judge *verdict.Judge) (*clusters.Cluster, func(), error) {
	a.progress("creating a kind cluster for all runs")
	cluster, err := judge.Clusters.Create(ctx, "flakes", a.spec("", judge.Clusters, judge.NodeImage), false)
	if err != nil {
		return nil, nil, err
	}
	remove := func() {
		if err := judge.Clusters.Delete(context.WithoutCancel(ctx), cluster.Name); err != nil {
			a.progress(fmt.Sprintf("could not remove cluster %s: %v", cluster.Name, err))
		}
	}
	return cluster, remove, nil
}

// tellFlake prints what a right answer was found guilty of.
func (a *app) tellFlake(r *verdict.Result) {
	fmt.Fprintf(a.out, "lab %d, seed %s: %s %s\n", r.Lab, strconv.FormatInt(r.Seed, 10), r.Verdict, r.Environment.Finding)
	for _, check := range r.Checks {
		if check.State == verdict.Failed {
			fmt.Fprintf(a.out, "  %s (%s): expected %s; saw %s\n", check.ID, check.Cause, check.Expected, check.Seen)
		}
	}
	fmt.Fprintf(a.out, "  artifacts: %s\n", r.Artifacts)
}
