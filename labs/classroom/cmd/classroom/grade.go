package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// gVisor is the name that its runtime has in its documentation (https://gvisor.dev/docs/user_guide/quick_start/docker/).
const gVisor = "runsc"

// gradeRun is what `classroom grade` is asked for.
type gradeRun struct {
	dir, out, runtime string
	labs              []int
}

func newGradeCommand(a *app) *cobra.Command {
	var run gradeRun
	cmd := &cobra.Command{
		Use:   "grade DIR",
		Short: "Judge what many learners handed in, and trust none of it (make grade DIR=...)",
		Long: `grade judges every folder and every zip in DIR: the checks of lab check on an embedded control plane, each learner in a
throwaway container without network, rights and this machine's files. Nothing in DIR is changed.

It prints a table, and writes grades.csv, and a folder with the report for each learner. Run again after an
interrupt, it goes on: a grade that is there is kept, if nothing else was handed in since.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run.dir = args[0]
			return a.grade(cmd.Context(), run)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&run.labs, "labs", nil, "labs to judge, such as 4 or 2,5 (default: all)")
	flags.StringVar(&run.out, "out", filepath.Join(a.State, "grade"), "folder for the results")
	flags.StringVar(&run.runtime, "runtime", "",
		"the container engine's runtime (default: runsc, which is gVisor, where the engine has it, else the engine's own)")
	return cmd
}

func (a *app) grade(ctx context.Context, run gradeRun) (err error) {
	c, err := a.Course()
	if err != nil {
		return err
	}
	labs, err := labsIn(c, run.labs)
	if err != nil {
		return err
	}
	dir, dirErr := filepath.Abs(run.dir)
	out, outErr := filepath.Abs(run.out)
	if err := errors.Join(dirErr, outErr); err != nil {
		return err
	}
	if workspace.Contains(dir, out) || workspace.Contains(out, dir) {
		return exit.Usage("%s would be mixed with the results, which go to %s: "+
			"move what was handed in, or name another folder with bin/classroom grade --out", dir, out)
	}
	all, others, err := grade.Find(run.dir)
	if err != nil {
		return exit.Usage("%w", err)
	}
	if len(others) > 0 {
		a.Notice(fmt.Sprintf("left out, because it is neither folder nor zip, or hidden: %s", strings.Join(others, ", ")))
	}
	unlock, err := a.Lock("grading", "the grades of this checkout")
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.PingEngine(ctx); err != nil {
		return err
	}
	kit, err := judge.NewKit(ctx, c, a.State, a.Cache, a.Progress)
	if err != nil {
		return err
	}
	containers, err := a.containers(ctx, kit, run.runtime)
	if err != nil {
		return err
	}
	containers.Seed = 1 + rand.Int64N(1<<32)
	a.Say("%s, labs %s, seed %d, containers of %s",
		cli.Count(len(all), "learner"), strings.Trim(fmt.Sprint(labs), "[]"), containers.Seed, containers.Runtime)
	return a.gradeAll(ctx, &grade.Grader{
		Course: c, Labs: labs, Judge: containers.Judge, Checks: kit.Checks, Runtime: containers.Runtime, Out: run.out,
		Parallel: runtime.NumCPU() / 2, Progress: a.Progress,
	}, all)
}

// containers are ready to be used: of the runtime that is wanted, or of gVisor where that works, or of the engine's own.
func (a *app) containers(ctx context.Context, kit *judge.Kit, wanted string) (*grade.Containers, error) {
	all, standard, err := grade.Runtimes(ctx, a.Engine())
	if err != nil {
		return nil, exit.Environment(err)
	}
	if wanted != "" && !slices.Contains(all, wanted) {
		return nil, exit.Usage("%s has no runtime %q; it has %s", a.Engine(), wanted, strings.Join(all, ", "))
	}
	c := &grade.Containers{Engine: a.Engine(), Runtime: cmp.Or(wanted, standard), Owner: a.Root, Kit: kit}
	if err := c.Prepare(ctx); err != nil {
		return nil, exit.Environment(err)
	}
	if wanted == "" && slices.Contains(all, gVisor) {
		c.Runtime = gVisor
		why := a.installGVisor(ctx)
		if why == nil {
			why = c.Try(ctx)
		}
		if why != nil {
			a.Notice(fmt.Sprintf("gVisor does not work here, so containers share this machine's kernel: %v", why))
			c.Runtime = standard
		}
	}
	return c, ctx.Err()
}

// engineDir is where the engine that scripts/engine.sh starts looks for gVisor.
const engineDir = "/var/lib/operator-lab/engine"

// installGVisor builds gVisor for that engine. Others have their own.
func (a *app) installGVisor(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(engineDir, "daemon.json")); err != nil || os.Geteuid() != 0 {
		return nil //nolint:nilerr // it is another engine
	}
	builder := &components.Builder{CacheDir: a.Cache, Log: a.Progress}
	built, err := builder.Build(ctx, gVisor)
	if err != nil {
		return err
	}
	link := filepath.Join(engineDir, gVisor)
	if there, err := os.Readlink(link); err == nil && there == built[gVisor] {
		return nil
	}
	_ = os.Remove(link) // one to another version
	return os.Symlink(built[gVisor], link)
}

// gradeAll grades, and writes what came of it after each learner: whatever ends it, the grades so far are there.
func (a *app) gradeAll(ctx context.Context, grader *grade.Grader, all []grade.Submission) error {
	path := filepath.Join(grader.Out, "grades.csv")
	var grades []grade.Grade
	var results []*verdict.Result
	var unwritten error
	err := grader.Run(ctx, all, func(g grade.Grade) {
		fmt.Fprintln(a.Out, g.Line())
		grades, results = append(grades, g), append(results, g.Results...)
		slices.SortFunc(grades, func(a, b grade.Grade) int { return strings.Compare(a.Name, b.Name) })
		unwritten = maybe.WriteFile(path, grade.CSV(grader.Course, grades), 0o600)
	})
	if err := errors.Join(unwritten, err); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nGrades: %s; reports: %s\n", path, filepath.Join(grader.Out, "*", "report.txt"))
	return cli.Told(verdict.Worst(results))
}

// labsIn are the numbers of labs, in order.
func labsIn(c *course.Course, wanted []int) ([]int, error) {
	if len(wanted) == 0 {
		for _, lab := range c.Labs {
			wanted = append(wanted, lab.Number)
		}
	}
	for _, n := range wanted {
		if _, err := c.Lab(n); err != nil {
			return nil, exit.Usage("%w", err)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(wanted))), nil
}
