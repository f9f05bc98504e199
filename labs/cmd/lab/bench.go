package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/room"
	"github.com/example/operator-lab/labs/internal/bench"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// fullRounds are those of a run whose numbers may stand on a page.
	fullRounds = 5
	// settleTime is how long a new cluster is left alone before its memory is read: its components have then done what
	// they do once. shortSettleTime is what a short run has time for.
	settleTime, shortSettleTime = time.Minute, 30 * time.Second
	// wrongEach and shortWrongEach are how many wrong answers a round judges.
	wrongEach, shortWrongEach = 3, 1
)

// How many clusters stand side by side: growthCounts are made all at once; the others as in a room, on kind and without
// containers.
var (
	growthCounts   = []int{1, 2, 4, 8}
	roomCounts     = []int{1, 5, 10, 20}
	embeddedCounts = []int{1, 10, 30}
)

const (
	// stockInTurn is how many stock clusters are made one after the other, for comparison.
	stockInTurn = 10
	// roomRest is how long the largest rooms are left alone before they are looked at.
	roomRest = 10 * time.Minute
)

// benchRun is what `lab bench` is asked for.
type benchRun struct {
	rounds               int // 0: fullRounds, or one when short
	seed                 int64
	short, growth, rooms bool
	embedded             bool // rooms of embedded control planes
	page                 string
}

func newBenchCommand(a *app) *cobra.Command {
	var run benchRun
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "For authors: time and memory side by side with stock kind and envtest (make bench)",
		Long: `bench measures the promises of docs/performance.md against kind's own defaults and envtest, all in one run and in
turn. It takes about half an hour, and the machine should have nothing else to do.

A target that is missed is printed as missed, with exit code 0. Exit code 1: a verdict was wrong, or, with --short,
a ratio is beyond what a busy machine can explain.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.bench(cmd.Context(), run) },
	}
	flags := cmd.Flags()
	flags.IntVar(&run.rounds, "rounds", 0, fmt.Sprintf("how often everything is measured (default: %d, with --short 1)", fullRounds))
	flags.Int64Var(&run.seed, "seed", 0, "the order, wrong answers, names and sizes of an earlier run (default: drawn)")
	flags.BoolVar(&run.short, "short", false, "one round, no targets: fail when something is far off")
	flags.BoolVar(&run.growth, "growth", false, "instead: what 1, 2, 4 and 8 clusters side by side cost")
	flags.BoolVar(&run.rooms, "rooms", false, "instead: what rooms of up to 20 kind clusters cost or, on the embedded control plane, of up to 30")
	flags.StringVar(&run.page, "write", "", "also write the table into this page, such as docs/performance.md")
	return cmd
}

// complete fills in what was not asked for, and refuses what makes no sense together.
func (r *benchRun) complete() error {
	switch {
	case r.rounds < 0 || r.seed < 0:
		return exit.Usage("--rounds and --seed cannot be negative")
	case r.short && r.growth, r.short && r.rooms, r.growth && r.rooms:
		return exit.Usage("--short, --growth and --rooms are different runs: use one of them")
	case r.crowds() && r.rounds != 0:
		return exit.Usage("--%s makes each number of clusters once: leave out --rounds", r.block())
	case r.page != "" && (r.short || r.rounds != 0 && r.rounds < fullRounds):
		return exit.Usage("--write wants a full run, with --rounds of at least %d and without --short: fewer samples are no result", fullRounds)
	}
	switch {
	case r.rounds != 0:
	case r.short || r.crowds():
		r.rounds = 1
	default:
		r.rounds = fullRounds
	}
	if r.seed == 0 {
		r.seed = 1 + rand.Int64N(1<<32)
	}
	return nil
}

// crowds says whether the run is about many clusters side by side.
func (r *benchRun) crowds() bool { return r.growth || r.rooms }

// block is the part of a page that the run is for.
func (r *benchRun) block() string {
	switch {
	case r.growth:
		return bench.GrowthBlock
	case r.rooms && r.embedded:
		return bench.EmbeddedRoomsBlock
	case r.rooms:
		return bench.RoomsBlock
	}
	return bench.FiguresBlock
}

func (a *app) bench(ctx context.Context, run benchRun) error {
	if err := run.complete(); err != nil {
		return err
	}
	switch {
	case a.cluster != onEmbedded:
		a.cluster = onKind
	case run.rooms:
		run.embedded = true
	default:
		return exit.Usage("CLUSTER=embedded: the benchmark compares with kind, and measures the embedded control plane too; leave it out")
	}
	if run.page != "" {
		if err := bench.CheckPage(run.page, run.block()); err != nil {
			return exit.Usage("%v", err)
		}
	}
	c, err := a.course()
	if err != nil {
		return err
	}
	a.workspace = filepath.Join(a.state, "bench") // nobody's; two runs at once would measure each other
	unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	w, remove, err := a.workbench(ctx, c, run)
	if err != nil {
		return err
	}
	defer remove()
	report := &bench.Report{
		Started: time.Now(), Command: bench.Commandline(run.seed, run.rounds, run.block()), Seed: run.seed, Rounds: run.rounds,
		Short: run.short, Machine: a.machine(ctx, w.NodeImage),
	}
	if report.Wrong, err = bench.ReadWrongAnswers(filepath.Join(a.state, "mutants.json")); err != nil {
		return err
	}
	if err := a.measure(ctx, w, run, report); err != nil {
		return err
	}
	report.Finished = time.Now()
	report.Fill()
	return a.tellBench(report, run)
}

// measure fills the report.
func (a *app) measure(ctx context.Context, w *bench.Workbench, run benchRun, report *bench.Report) (err error) {
	if run.crowds() {
		crowds, err := a.crowdsOf(w, run)
		if err != nil {
			return err
		}
		report.Failures, err = w.Grow(ctx, crowds, func(g bench.Growth) {
			report.Growth = append(report.Growth, g)
			a.progress(fmt.Sprintf("%d clusters, %s: ready after %.1f s", g.Clusters, g.On, g.Seconds))
		})
		return err
	}
	a.progress(fmt.Sprintf("measuring %d rounds, seed %d", run.rounds, run.seed))
	report.Samples, report.Failures, err = bench.Run(ctx, w.Subjects(), run.rounds, run.seed, a.progress)
	return err
}

// crowdsOf are the clusters side by side that the run is about.
func (a *app) crowdsOf(w *bench.Workbench, run benchRun) ([]bench.Crowd, error) {
	ours := bench.Crowd{
		On: a.cluster, Owned: w.Ours, Spec: clusters.Spec{NodeImage: w.NodeImage.Ref}, Counts: growthCounts,
		Free: func(ctx context.Context) map[doctor.Resource]doctor.Supply { return a.supplies(ctx, w.NodeImage) },
	}
	if run.growth {
		return []bench.Crowd{ours}, nil
	}
	ours.Counts, ours.AtOnce, ours.Rest = roomCounts, room.Limit(), roomRest
	if run.embedded {
		ours.Counts = embeddedCounts
		return []bench.Crowd{ours}, nil
	}
	owned, err := a.ownedStock()
	if err != nil {
		return nil, err
	}
	stock := bench.Crowd{
		On: "stock kind, in turn", Owned: owned, Spec: w.StockSpec(), Counts: []int{stockInTurn}, AtOnce: 1, Free: ours.Free,
	}
	return []bench.Crowd{stock, ours}, nil
}

// tellBench prints and keeps the report, and turns it into an exit code.
func (a *app) tellBench(report *bench.Report, run benchRun) error {
	report.Print(a.out)
	file := "bench.json"
	if run.crowds() {
		file = "bench-" + run.block() + ".json"
	}
	if err := report.Write(filepath.Join(a.state, file)); err != nil {
		return err
	}
	if run.page != "" {
		if err := bench.WritePage(run.page, run.block(), report.Page()); err != nil {
			return err
		}
	}
	return a.judgeBench(report)
}

// judgeBench is the end of a run: what failed counts always, what is far off only where there are no targets.
func (a *app) judgeBench(report *bench.Report) error {
	var result error
	for _, f := range report.Failures {
		if _, ok := errors.AsType[*clusters.Problem](f.Unwrap()); ok && result == nil {
			result = exit.Environment(exit.ErrTold)
		} else if !ok {
			result = exit.ErrFail
		}
	}
	if !report.Short {
		return result
	}
	for _, line := range bench.Broken(report.Rows) {
		fmt.Fprintln(a.out, "broken:", line)
		result = exit.ErrFail
	}
	return result
}

// workbench sets everything up that is measured with. remove takes away what is not part of any measurement.
func (a *app) workbench(ctx context.Context, c *course.Course, run benchRun) (w *bench.Workbench, remove func(), err error) {
	n := 3 // one in use, one that waits, and one of stock kind
	if run.crowds() {
		n = slices.Max(slices.Concat(growthCounts, roomCounts))
	}
	owned, image, err := a.ready(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	w = &bench.Workbench{
		Course: c, State: filepath.Join(a.state, "bench"), Cache: a.cache, Engine: a.engine(), Ours: owned, NodeImage: image,
		Settle: settleTime, WrongEach: wrongEach, Seed: run.seed,
	}
	if run.crowds() {
		return w, func() {}, nil
	}
	if run.short {
		w.Settle, w.WrongEach = shortSettleTime, shortWrongEach
	}
	if w.Wrong, err = wrongAnswersTo(c, bench.Lab, run.seed); err != nil {
		return nil, nil, err
	}
	if w.Stock, err = a.ownedStock(); err != nil {
		return nil, nil, err
	}
	solution, forget, err := renderAside(c, bench.Lab)
	if err != nil {
		return nil, nil, err
	}
	w.Solution = solution
	remove = func() { a.closePool(w.Pool); forget() }
	if err := a.prepareBench(ctx, w); err != nil {
		remove()
		return nil, nil, err
	}
	return w, remove, nil
}

// prepareBench compiles everything, which takes minutes the first time.
func (a *app) prepareBench(ctx context.Context, w *bench.Workbench) error {
	processes, provider, err := a.ownedEmbedded()
	if err != nil {
		return err
	}
	a.progress("compiling what is measured")
	if err := provider.Prepare(ctx); err != nil {
		return err
	}
	w.Embedded = processes
	if w.Tools, err = verdict.BuildTools(ctx, a.root, a.state); err != nil {
		return err
	}
	if w.Ready, err = bench.BuildReady(ctx, a.root, a.state, a.cache, w.Tools.Guard); err != nil {
		return err
	}
	w.Pool = a.startPool(w.Ours, w.NodeImage, 1)
	return w.Prepare(ctx)
}

// closePool ends the pool, if there is one yet, and deletes what waits in it.
func (a *app) closePool(waiting bench.Pool) {
	closer, ok := waiting.(io.Closer)
	if !ok {
		return
	}
	if err := closer.Close(); err != nil {
		a.progress(fmt.Sprintf("could not remove what waited in the pool: %v", err))
	}
}

// ownedStock gives kind clusters of this checkout that are not tuned.
func (a *app) ownedStock() (*clusters.Owned, error) {
	kind, err := clusters.NewKind(a.state, clusters.WithEngine(a.engine()), clusters.WithKindsWait(clusters.StockWait))
	if err != nil {
		return nil, err
	}
	return clusters.NewOwned(a.state, kind), nil
}

// wrongAnswersTo are the wrong answers to a lab, in an order that the seed decides.
func wrongAnswersTo(c *course.Course, n int, seed int64) ([]mutants.Answer, error) {
	all, err := mutants.Load(c)
	if err != nil {
		return nil, exit.Usage("%v", err)
	}
	answers := slices.DeleteFunc(mutants.Answers(c, all), func(a mutants.Answer) bool { return a.Mutant == nil || a.Lab != n })
	rand.New(rand.NewPCG(uint64(seed), uint64(n))).Shuffle(len(answers), func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
	return answers, nil
}

// machine describes what the numbers were measured on.
func (a *app) machine(ctx context.Context, image nodeimage.Image) bench.Machine {
	m := bench.ThisMachine(ctx, a.root, a.engine())
	if image.Ref == "" { // on the embedded control plane
		m.Kubernetes, _ = components.Version(a.root, "kube-apiserver")
		return m
	}
	m.NodeImage = image.Ref
	name, _, _ := strings.Cut(image.Ref, "@")
	m.Kubernetes = name[strings.LastIndexByte(name, ':')+1:] // kind's node images are tagged with it, and so are ours
	return m
}

// commit is that of the checkout.
func (a *app) commit(ctx context.Context) string { return bench.Commit(ctx, a.root) }

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
