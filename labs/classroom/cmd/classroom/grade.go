package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/export"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/classroom/hosting"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/classroom/sandbox"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// sweepLimit bounds the removal of containers at the end, also after an interrupt.
const sweepLimit = time.Minute

// gradeRun is what `classroom grade` is asked for.
type gradeRun struct {
	dir  string
	labs string
	lab  int // 0 for labs
	out  string
	seed int64
	// runtime is the container engine's for what was handed in, "" for its default.
	runtime string
	// hosted judges on a Kubernetes that was prepared for it.
	hosted bool
	// force grades on a machine that learners may have been root on.
	force bool
}

func newGradeCommand(a *app) *cobra.Command {
	var run gradeRun
	cmd := &cobra.Command{
		Use:   "grade DIR",
		Short: "Judge what many learners handed in, and trust none of it (make grade DIR=...)",
		Long: `grade judges every folder and every repository in DIR: the checks of lab check, each learner on fresh clusters of
their own. What they handed in is built and run in containers without network, rights and this machine's files. A folder
is judged as it lies there, a bare repository at HEAD. Nothing in DIR is changed.

It prints a table, and writes grades.csv, grades.json, and a folder with report and evidence for each learner.`,
		Args: cli.One("grade DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			run.dir = args[0]
			return a.grade(cmd.Context(), run)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&run.labs, "labs", "", "labs to judge, such as 1-4 or 2,5 (default: all)")
	flags.IntVar(&run.lab, "lab", 0, "judge this lab alone")
	flags.StringVar(&run.out, "out", filepath.Join(a.State, "grade"), "folder for the results")
	flags.StringVar(&run.runtime, "runtime", "",
		"the container engine's runtime for what was handed in, such as runsc, which is gVisor (default: the engine's own)")
	flags.BoolVar(&run.hosted, "hosted", false, "judge on the Kubernetes of KUBECONFIG, in the namespace that hosted install has prepared (docs/hosted.md)")
	flags.BoolVar(&run.force, "force", false, "grade although learners may be root on this machine: those of its room have kind clusters")
	flags.Int64Var(&run.seed, "seed", 0, "names and sizes of an earlier run (default: drawn once for all learners)")
	return cmd
}

func (a *app) grade(ctx context.Context, run gradeRun) (err error) {
	if run.hosted && run.runtime != "" {
		return exit.Usage("--runtime is for containers of this machine; bin/classroom hosted install --runtime-class chooses that of a cluster")
	}
	c, err := a.Course()
	if err != nil {
		return err
	}
	labs, err := run.chosen(c)
	if err != nil {
		return err
	}
	if err := run.apart(); err != nil {
		return err
	}
	all, others, err := grade.Find(run.dir)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		a.Progress(fmt.Sprintf("left out, because it is no folder, or hidden: %s", strings.Join(others, ", ")))
	}
	unlock, err := a.lockGrading()
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.refuseToGrade(run.force); err != nil { // a room can be opened until the lock is taken
		return err
	}
	if run.seed == 0 {
		run.seed = 1 + rand.Int64N(1<<32)
	}
	grader := &grade.Grader{Course: c, Labs: labs, Out: run.out, Progress: a.Progress}
	begin := func(where string) {
		fmt.Fprintf(a.Out, "%s, labs %s, seed %d, %s\n", cli.Count(len(all), "learner"), strings.Trim(fmt.Sprint(labs), "[]"), run.seed, where)
	}
	if run.hosted {
		where := ""
		if grader.Judge, where, err = a.elsewhere(run); err != nil {
			return err
		}
		grader.Parallel = hosting.Outstanding
		begin(where)
		return a.gradeAll(ctx, grader, all)
	}
	container, err := a.container(ctx, c, run.runtime)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.sweepContainers(ctx, container)) }()
	begin("containers of " + runtimeOf(ctx, container))
	judge, closeJudge, err := a.distrusting(ctx, c, container, run.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeJudge()) }()
	grader.Judge = judge
	return a.gradeAll(ctx, grader, all)
}

// apart refuses to keep results with what was handed in: what an earlier run left of a learner is removed.
func (r gradeRun) apart() error {
	dir, dirErr := filepath.Abs(r.dir)
	out, outErr := filepath.Abs(r.out)
	if err := errors.Join(dirErr, outErr); err != nil {
		return err
	}
	if workspace.Contains(dir, out) || workspace.Contains(out, dir) {
		return exit.Usage("%s would be mixed with the results, which go to %s, and what lies there may be removed: "+
			"move what was handed in, or name another folder with bin/classroom grade --out", dir, out)
	}
	return nil
}

// elsewhere makes judges of Jobs, and says where they are.
func (a *app) elsewhere(run gradeRun) (judge grade.Judge, where string, err error) {
	judges, where, err := hosted.Connect("")
	if err != nil {
		return nil, "", exit.Usage("%v", err)
	}
	judges.Progress = func(string) {} // of many at a time
	return func(ctx context.Context, state, workspace string, labs []int) ([]*verdict.Result, error) {
		results, err := judges.Check(ctx, state, workspace, hosted.Question{Labs: labs, Seed: run.seed})
		if unfit, ok := errors.AsType[*hosted.Unfit](err); ok {
			err = &grade.Refused{Why: unfit.Finding()}
		}
		return results, err
	}, where, nil
}

// refuseToGrade is an error on a machine that is open to learners.
func (a *app) refuseToGrade(force bool) error {
	r, err := roster.Load(a.State)
	open := err == nil && (len(r.OpenOn) > 0 || r.Provider == cli.Kind && r.Address != "")
	if !open {
		return err
	}
	if force {
		a.Progress("whoever has a kubeconfig of this room " + rootHere + ", and could change grades; going on all the same (FORCE=1)")
		return nil
	}
	return exit.Usage("whoever has a kubeconfig of this room %s, and could change grades: grade on another machine, "+
		"or, if you trust all of them, with FORCE=1", rootHere)
}

// gradeAll grades, and writes what came of it after each learner: whatever ends it, the grades so far are there.
func (a *app) gradeAll(ctx context.Context, grader *grade.Grader, all []grade.Submission) error {
	records, out := export.NewRecords(grader.Course, time.Now()), grader.Out
	var results []*verdict.Result
	table := grade.NewTable(a.Out, grader.Labs, all)
	write := func() error {
		for _, f := range []struct{ format, name string }{{"csv", "grades.csv"}, {"json", "grades.json"}} {
			if err := writeRecords(records, f.format, filepath.Join(out, f.name)); err != nil {
				return err
			}
		}
		return nil
	}
	unwritten := write()
	err := grader.Run(ctx, all, func(g grade.Grade) {
		table.Tell(g)
		records.At = time.Now()
		records.Add(g.Name, g.Results)
		results = append(results, g.Results...)
		unwritten = write()
	})
	if err := errors.Join(unwritten, err); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nGrades: %s, %s; reports and evidence: %s\n", filepath.Join(out, "grades.csv"), filepath.Join(out, "grades.json"), out)
	return verdict.Worst(results).Err()
}

func writeRecords(records *export.Records, format, path string) (err error) {
	f, err := export.ByName(format)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write grades: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write grades: %w", err)
	}
	return errors.Join(f.Write(file, records), file.Close())
}

// chosen are the labs to judge.
func (r gradeRun) chosen(c *course.Course) ([]int, error) {
	switch {
	case r.lab != 0 && r.labs != "":
		return nil, exit.Usage("--lab and --labs say the same in two ways: use one of them")
	case r.lab != 0:
		n, err := cli.LabNumber(c, strconv.Itoa(r.lab))
		return []int{n}, err
	case r.labs == "":
		return labsIn(c, fmt.Sprintf("1-%d", len(c.Labs)))
	}
	return labsIn(c, r.labs)
}

// labsIn reads a list of labs: numbers and ranges, with commas between them.
func labsIn(c *course.Course, list string) ([]int, error) {
	var labs []int
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := cli.LabNumber(c, first)
		if err != nil {
			return nil, err
		}
		to, err := cli.LabNumber(c, last)
		if err != nil {
			return nil, err
		}
		if from > to {
			return nil, exit.Usage("%q is no range of labs: use one such as 1-4", part)
		}
		for n := from; n <= to; n++ {
			labs = append(labs, n)
		}
	}
	slices.Sort(labs)
	return slices.Compact(labs), nil
}

// container is how what nobody trusts is built and run, ready to be used.
func (a *app) container(ctx context.Context, c *course.Course, runtime string) (*sandbox.Container, error) {
	if err := clusters.PingEngine(ctx, a.Engine()); err != nil {
		return nil, err // also for embedded clusters: without an engine there are no containers
	}
	shim, err := sandbox.BuildShim(ctx, c.Root, filepath.Join(a.State, "bin"))
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return nil, exit.Environment(fmt.Errorf("go env: %w", err))
	}
	settings := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(settings) != 2 {
		return nil, exit.Environment(fmt.Errorf("go env says %q, and not where Go and its modules are", out))
	}
	container := &sandbox.Container{Engine: a.Engine(), Runtime: runtime, Shim: shim, Owner: c.Root, Toolchain: sandbox.Toolchain{GoRoot: settings[0], ModCache: settings[1]}}
	if err := container.Prepare(ctx); err != nil {
		return nil, exit.Environment(err)
	}
	if container.BuildCache, err = grade.BuildCache(ctx, c, shim, a.Cache, a.Progress); err != nil {
		return nil, err
	}
	return container, a.sweepContainers(ctx, container)
}

// runtimeOf says what runs the containers.
func runtimeOf(ctx context.Context, container *sandbox.Container) string {
	if container.Runtime != "" {
		return container.Runtime
	}
	if _, standard, err := container.Runtimes(ctx); err == nil && standard != "" {
		return standard
	}
	return container.Engine
}

// sweepContainers removes what this run, or one that was killed, has left.
func (a *app) sweepContainers(ctx context.Context, container *sandbox.Container) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepLimit)
	defer cancel()
	if err := container.Sweep(ctx); err != nil {
		return exit.Environment(fmt.Errorf("remove the containers of learners' programs: %w", err))
	}
	return nil
}

// distrusting makes a judge that trusts nobody.
func (a *app) distrusting(ctx context.Context, c *course.Course, container *sandbox.Container, seed int64) (grade.Judge, func() error, error) {
	owned, image, err := a.Ready(ctx, 3) // one in use, one that waits, and one that goes away
	if err != nil {
		return nil, nil, err
	}
	launcher, err := container.Launcher(filepath.Join(a.State, "grade.json"))
	if err != nil {
		return nil, nil, err
	}
	a.Progress("compiling the checks")
	tools, err := verdict.BuildTools(ctx, c.Root, a.State)
	if err != nil {
		return nil, nil, err
	}
	common := verdict.Judge{
		Course: c, Cache: a.Cache, Clusters: owned, NodeImage: image, Tools: tools, Launcher: launcher, Progress: a.Progress,
		Seed: seed,
	}
	closing := func() error { return nil }
	if a.Chosen(ctx) == cli.Kind {
		waiting := a.StartPool(owned, a.Spec(owned, image), 1) // the next learner's, while this one is judged
		common.Pool, closing = waiting, waiting.Close
	}
	return func(ctx context.Context, state, workspace string, labs []int) ([]*verdict.Result, error) {
		// Nothing of the learner before is to take anything from this one.
		if err := a.sweepContainers(ctx, container); err != nil {
			return nil, err
		}
		judge := common // its own for each learner
		judge.State, judge.Workspace = state, workspace
		return judge.Check(ctx, labs)
	}, closing, nil
}
