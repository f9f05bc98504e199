package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// The check that a soak repeats, and its lab.
const (
	stormCheck = "weathers-storm"
	stormLab   = 5
)

// soak is what `lab soak` was asked for.
type soak struct {
	seeds, stage int
	from         int64
	storm        string
}

func newSoakCommand(a *app) *cobra.Command {
	var s soak
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "For authors: storm after storm on our own operator, each of another seed (make soak)",
		Long: `soak lets the storm of lab 5 loose on the finished stage of operator/, once for each seed, on one cluster. It
prints every storm that was not weathered, and how many there were. lab check 5 --seed S repeats one of them.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.soak(cmd.Context(), s)
		},
	}
	cmd.Flags().IntVar(&s.seeds, "seeds", 200, "how many storms")
	cmd.Flags().Int64Var(&s.from, "from", 1, "the seed of the first one")
	cmd.Flags().IntVar(&s.stage, "stage", stormLab, "the stage of operator/ that weathers them")
	stormFlag(cmd, &s.storm)
	return cmd
}

// stormFlag is --storm, as every command has it that can make a storm.
func stormFlag(cmd *cobra.Command, storm *string) {
	cmd.Flags().StringVar(storm, "storm", "", "long makes the storm of lab 5 a longer one, with two managers at once")
}

// knownStorm refuses what no storm is called.
func knownStorm(storm string) error {
	if storm != "" && storm != harness.StormLong {
		return exit.Usage("STORM=%s is not known: use %s, or leave it out", storm, harness.StormLong)
	}
	return nil
}

func (a *app) soak(ctx context.Context, s soak) error {
	if err := knownStorm(s.storm); err != nil {
		return err
	}
	c, err := a.course()
	if err != nil {
		return err
	}
	if s.stage < stormLab || s.stage > len(c.Labs) || s.seeds < 1 || s.from < 1 {
		return exit.Usage("use --stage %d to %d, and --seeds and --from of at least 1", stormLab, len(c.Labs))
	}
	solution, remove, err := renderAside(c, s.stage)
	if err != nil {
		return err
	}
	defer remove()
	judge, err := a.authorsJudge(ctx, c, "soak")
	if err != nil {
		return err
	}
	judge.Workspace, judge.Storm = solution, s.storm
	var weathered, all []harness.Storm
	started := time.Now()
	err = judge.Soak(ctx, stormLab, stormCheck, s.from, s.seeds, func(storm harness.Storm) {
		all = append(all, storm)
		if storm.Cause == "" {
			weathered = append(weathered, storm)
			a.progress(fmt.Sprintf("seed %d: %.1f s, settled after %.1f s, %d events", storm.Seed, storm.Seconds, storm.Settled, storm.Events))
			return
		}
		fmt.Fprintf(a.out, "seed %d: %s after %.1f s: %s\n", storm.Seed, storm.Cause, storm.Seconds, storm.Seen)
	})
	a.tellSoak(s, all, weathered, time.Since(started))
	if err != nil {
		return err
	}
	if len(weathered) < len(all) {
		return exit.ErrFail
	}
	return nil
}

// tellSoak prints the result, also of a soak that was broken off.
func (a *app) tellSoak(s soak, all, weathered []harness.Storm, took time.Duration) {
	fmt.Fprintf(a.out, "%d of %d seeds from %d, stage %d: %d not weathered; %s in all\n",
		len(all), s.seeds, s.from, s.stage, len(all)-len(weathered), took.Round(time.Second))
	if len(weathered) == 0 {
		return
	}
	number := func(of func(harness.Storm) float64) []float64 {
		var all []float64
		for _, storm := range weathered {
			all = append(all, of(storm))
		}
		return all
	}
	fmt.Fprintf(a.out, "a storm: %s s; until all was settled: %s s; events on the busiest Memcached: %s\n",
		spread(number(func(s harness.Storm) float64 { return s.Seconds })),
		spread(number(func(s harness.Storm) float64 { return s.Settled })),
		spread(number(func(s harness.Storm) float64 { return float64(s.Events) })))
}

// spread is the median of some numbers, and the largest.
func spread(numbers []float64) string {
	slices.Sort(numbers)
	return fmt.Sprintf("median %.1f, at most %.1f", numbers[len(numbers)/2], numbers[len(numbers)-1])
}

// renderAside writes a stage of the course into a folder that is nobody's workspace.
func renderAside(c *course.Course, stage int) (dir string, remove func(), err error) {
	parent, err := os.MkdirTemp("", "operator-lab-stage-")
	if err != nil {
		return "", nil, fmt.Errorf("make folder for stage %d: %w", stage, err)
	}
	remove = func() { _ = os.RemoveAll(parent) }
	tree, err := c.Render(stage)
	if err == nil {
		dir = filepath.Join(parent, fmt.Sprintf("stage-%d", stage))
		err = tree.WriteTo(dir)
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

// authorsJudge is a judge of stages that keeps its results apart from those of any learner.
func (a *app) authorsJudge(ctx context.Context, c *course.Course, name string) (*verdict.Judge, error) {
	owned, image, err := a.ready(ctx, 1)
	if err != nil {
		return nil, err
	}
	tools, err := verdict.BuildTools(ctx, a.root, a.state)
	if err != nil {
		return nil, err
	}
	return &verdict.Judge{
		Course: c, State: filepath.Join(a.state, name), Cache: a.cache, Clusters: owned, NodeImage: image,
		Tools: tools, Progress: a.progress,
	}, nil
}
