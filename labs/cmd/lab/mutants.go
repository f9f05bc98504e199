package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/proof/gotest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// sampleSize is how many wrong answers of each lab a sample has, which `make mutants` asks. CI asks [mutants.Gate].
const sampleSize = 2

// mutantsRun is what `lab mutants` is asked for.
type mutantsRun struct {
	lab       int    // 0 for all
	repeat    int    // how often to judge each
	storm     string // how hard the storm of lab 5 blows
	only      string // an id, or lab/id
	all       bool
	gate      bool // what every change is asked, instead of a sample
	seed      int64
	keepGoing bool
	parallel  int
	into      string // a new folder to write to instead of judging
}

func newMutantsCommand(a *app) *cobra.Command {
	var run mutantsRun
	cmd := &cobra.Command{
		Use:    "mutants",
		Short:  "For authors: judge wrong answers, and see whether each is caught by the check that is there for it (make mutants)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := run.check(); err != nil {
				return err
			}
			if run.into != "" {
				return a.writeMutants(cmd.Context(), run)
			}
			_, err := a.mutants(cmd.Context(), run)
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&run.lab, "lab", 0, "only wrong answers to this lab, all of them")
	flags.StringVar(&run.only, "only", "", "only the wrong answer of this id, or with solution the right answers")
	flags.IntVar(&run.repeat, "repeat", 1, "judge each so often, with another seed each time")
	stormFlag(cmd, &run.storm)
	flags.BoolVar(&run.all, "all", false, "all wrong answers instead of a sample, and the right ones")
	flags.Int64Var(&run.seed, "seed", 0, "draw the sample, names and sizes of an earlier run (default: drawn)")
	flags.BoolVar(&run.keepGoing, "keep-going", true, "go on after an outcome that is not what it should be")
	flags.IntVar(&run.parallel, "parallel", 1, "how many to judge at a time; more is sooner, and the times mean less")
	flags.StringVar(&run.into, "into", "", "judge nothing, and write what the learner would have into this new folder")
	return cmd
}

// check looks at the flags that cobra cannot.
func (r mutantsRun) check() error {
	if r.repeat < 1 {
		return exit.Usage("REPEAT=%d: judge each answer at least once", r.repeat)
	}
	return knownStorm(r.storm)
}

// mutants judges wrong answers and counts those that are caught as they should be.
func (a *app) mutants(ctx context.Context, run mutantsRun) (count gotest.Count, err error) {
	if run.seed == 0 {
		run.seed = 1 + rand.Int64N(1<<32)
	}
	c, answers, of, err := a.answers(run)
	if err != nil {
		return count, err
	}
	owned, image, err := a.Ready(ctx, run.parallel+1)
	if err != nil {
		return count, err
	}
	tools, err := verdict.BuildTools(ctx, a.Root, a.State)
	if err != nil {
		return count, err
	}
	runner := &mutants.Runner{
		Course: c, State: filepath.Join(a.State, "mutants"), Cache: a.Cache, Clusters: owned, NodeImage: image,
		Tools: tools, Seed: run.seed, Parallel: run.parallel, KeepGoing: run.keepGoing, Again: run.gate, Storm: run.storm, Progress: a.Progress,
	}
	wrong := slices.DeleteFunc(slices.Clone(answers), func(a mutants.Answer) bool { return a.Mutant == nil })
	fmt.Fprintf(a.Out, "%d of %d wrong answers, seed %d\n", len(wrong), of, run.seed)
	report := mutantsReport{
		Schema: 1, Started: time.Now(), Commit: a.commit(ctx), Cluster: a.Cluster, Seed: run.seed, Judged: len(wrong), Of: of,
	}
	table := mutants.NewTable(a.Out, answers)
	err = runner.Run(ctx, mutants.Repeat(answers, max(1, run.repeat)), func(o mutants.Outcome) {
		table.Tell(o)
		report.Outcomes = append(report.Outcomes, o)
	})
	report.Summary = mutants.Summarize(c, report.Outcomes)
	report.Print(a.Out)
	count = gotest.Count{Passed: report.Caught + report.Passed, Failed: report.Wrong, Again: report.Again}
	if err != nil {
		return count, err
	}
	if err := report.write(filepath.Join(a.State, "mutants.json")); err != nil {
		return count, err
	}
	if report.Wrong > 0 {
		return count, exit.ErrFail
	}
	return count, nil
}

// answers are what to judge, out of so many wrong answers.
func (a *app) answers(run mutantsRun) (c *course.Course, answers []mutants.Answer, of int, err error) {
	if c, err = a.Course(); err != nil {
		return nil, nil, 0, err
	}
	all, err := mutants.Load(c)
	if err != nil {
		return nil, nil, 0, exit.Usage("%v", err)
	}
	answers, err = run.choose(c, all)
	return c, answers, len(all), err
}

// writeMutants writes the workspaces of learners who answer like that.
func (a *app) writeMutants(ctx context.Context, run mutantsRun) error {
	c, answers, _, err := a.answers(run)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(run.into); err == nil {
		return exit.Usage("%s exists: name a folder that does not", run.into)
	}
	for _, answer := range answers {
		tree, err := answer.Render(ctx, c, "")
		if err != nil {
			return err
		}
		dir := filepath.Join(run.into, fmt.Sprint(answer.Lab), answer.ID())
		if err := tree.WriteTo(dir); err != nil {
			return err
		}
		fmt.Fprintln(a.Out, "wrote", dir)
	}
	return nil
}

// choose says what to judge.
func (r mutantsRun) choose(c *course.Course, all []*mutants.Mutant) ([]mutants.Answer, error) {
	if r.gate {
		return mutants.Gate(c, all), nil
	}
	if r.lab == 0 && r.only == "" && !r.all {
		return mutants.Sample(c, all, sampleSize, r.seed), nil
	}
	answers := slices.DeleteFunc(mutants.Answers(c, all), func(a mutants.Answer) bool {
		switch {
		case r.lab != 0 && a.Lab != r.lab:
			return true
		case r.only != "":
			return a.ID() != r.only && (a.Mutant == nil || a.Mutant.String() != r.only)
		}
		return a.Mutant == nil && !r.all
	})
	if len(answers) == 0 {
		return nil, exit.Usage("there is no such answer: they are solution, and %s/*/%s/<id>.patch", course.LabsDir, mutants.Dir)
	}
	return answers, nil
}

// mutantsReport is a run for scripts, in .lab/mutants.json.
type mutantsReport struct {
	Schema  int       `json:"schema"`
	Started time.Time `json:"started"`
	// Commit is that of the checkout, with "-dirty" when it had changes, and Cluster the kind of cluster.
	Commit  string `json:"commit"`
	Cluster string `json:"cluster"`
	Seed    int64  `json:"seed"`
	// Judged wrong answers, Of all there are.
	Judged int `json:"judged"`
	Of     int `json:"of"`
	mutants.Summary
	Outcomes []mutants.Outcome `json:"outcomes"`
}

func (r *mutantsReport) write(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// commit is the short commit of the checkout, with "-dirty" when tracked files have changed since, and "" when that is
// not known.
func (a *app) commit(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12")
	cmd.Dir = a.Root
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
