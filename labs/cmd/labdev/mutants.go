package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/cka"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/practice"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// mutantsRun are the flags of `labdev mutants`.
type mutantsRun struct {
	lab  int    // 0 for all
	only string // an id, or lab/id
	all  bool
	seed int64 // of each verdict, no flag; with 0, each verdict draws one
}

func newMutantsCommand(a *app) *cobra.Command {
	var run mutantsRun
	cmd := cli.Command("mutants", `Judge wrong and right answers (make mutants)

Each is judged on a fresh cluster; one that is not judged as it should be is a failure: docs/testing.md. Without flags it judges those
that make test judges.`, cobra.NoArgs, func(ctx context.Context, _ []string) error {
		return a.testPhases(ctx, false, phase{"wrong and right answers", a.answers(run)})
	})
	flags := cmd.Flags()
	flags.IntVar(&run.lab, "lab", 0, "only answers to this lab, all of them")
	flags.StringVar(&run.only, "only", "", "only answers of this id, such as solution, starter, 4/nil-client, cka-3 or cka-3/number")
	flags.BoolVar(&run.all, "all", false, "all answers")
	return cmd
}

// mutants judges answers, and counts those that came out as they should.
func (a *app) mutants(ctx context.Context, run mutantsRun) (n count, err error) {
	c, err := a.Course()
	if err != nil {
		return n, err
	}
	wrong, err := mutants.Load(c)
	if err != nil {
		return n, exit.Usage("%v", err)
	}
	answers := run.choose(ctx, c, wrong)
	n, err = a.tasks(ctx, run)
	switch {
	case err != nil || len(answers) == 0 && n != (count{}):
		return n, err
	case len(answers) == 0:
		return n, exit.Usage("there is no such answer: they are starter, solution, and %s/*/%s/<id>.patch; of a task setup, solution-<name>, and %s/*/wrong/<id>.*",
			course.LabsDir, mutants.Dir, practice.Dir)
	}
	tools, err := verdict.BuildTools(ctx, a.Root, a.State)
	if err != nil {
		return n, err
	}
	runners := map[string]*mutants.Runner{} // by kind of cluster
	for _, answer := range answers {
		on := a.App
		if on.Cluster == cli.Auto {
			on.Cluster = map[bool]string{true: cli.Kind, false: cli.Embedded}[answer.NeedsPods(c)]
		}
		runner := runners[on.Cluster]
		if runner == nil {
			runner = &mutants.Runner{Course: c, State: filepath.Join(a.State, "mutants"), Cache: a.Cache, Tools: tools, Seed: run.seed}
			if runner.Clusters, runner.NodeImage, err = on.Ready(ctx, 1); err != nil {
				return n, err
			}
			runners[on.Cluster] = runner
		}
		o, err := runner.Judge(ctx, answer)
		if err != nil {
			return n, err
		}
		n = n.add(a.told(o))
	}
	return n, nil
}

// choose returns the answers to judge.
func (r mutantsRun) choose(ctx context.Context, c *course.Course, wrong []*mutants.Mutant) []mutants.Answer {
	if r.lab == 0 && r.only == "" && !r.all {
		return mutants.Gate(c, wrong, mutants.Changed(ctx, c.Root))
	}
	return slices.DeleteFunc(mutants.All(c, wrong), func(a mutants.Answer) bool {
		return r.lab != 0 && a.Lab != r.lab || r.only != "" && r.only != a.ID && r.only != a.String()
	})
}

// tasks judges answers to tasks of the CKA practice. --only takes the name of a task, too.
func (a *app) tasks(ctx context.Context, run mutantsRun) (n count, err error) {
	p, err := practice.Load(a.Root, a.State, cka.Programs())
	if err != nil {
		return n, exit.Usage("%v", err)
	}
	changed := mutants.Changed(ctx, a.Root)
	for _, answer := range mutants.TaskAnswers(p, func(dir string) bool { return run.all || run.only != "" || changed(dir) }) {
		if run.lab != 0 || run.only != "" && !slices.Contains([]string{answer.Task.Name, answer.Script.Name, answer.String()}, run.only) {
			continue
		}
		on := a.App
		if on.Cluster == cli.Auto || answer.Task.Cluster == cli.Kind {
			on.Cluster = answer.Task.Cluster
		}
		path, err := on.KubectlPath(ctx)
		if err != nil {
			return n, err
		}
		owned, image, err := on.Ready(ctx, 1)
		if err != nil {
			return n, err
		}
		dir := filepath.Join(a.State, "mutants", strings.ReplaceAll(answer.String(), "/", "-"))
		o, err := answer.Judge(ctx, owned, on.Spec(owned, image), a.Root, dir, path, cmp.Or(run.seed, 1+rand.Int64N(99_999)))
		if err != nil {
			return n, err
		}
		n = n.add(a.told(o))
	}
	return n, nil
}

// told prints what came of an answer, and counts it.
func (a *app) told(o mutants.Outcome) count {
	fmt.Fprintln(a.Out, o)
	if len(o.Wrong) > 0 {
		return count{failed: 1}
	}
	return count{passed: 1}
}
