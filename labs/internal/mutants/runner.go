package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// deleteLimit is how long a cluster may take to be deleted, also after an interrupt.
const deleteLimit = 90 * time.Second

// Runner judges answers on real clusters of its own, which it cleans between them.
type Runner struct {
	Course *course.Course
	// State keeps the workspace and the artifacts of each answer, in a folder of its own.
	State string
	// Cache is where memcached's image is kept.
	Cache     string
	Clusters  *clusters.Manager
	NodeImage nodeimage.Image
	Tools     verdict.Tools
	// Seed is that of the verdict on an answer's first run. That of the next run is one more.
	Seed int64
	// Storm is how hard the storm of lab 5 is: "" or [suite.StormLong].
	Storm string
	// Parallel is how many answers are judged at a time: 1 for times that mean something. There is one
	// cluster more, so that nobody waits while a cluster is cleaned.
	Parallel int
	// KeepGoing goes on after an outcome that is not what it should be.
	KeepGoing bool
	// Again judges an answer once more, on a new cluster, when the verdict blames the machine. Without it, that is an
	// outcome as it should not be.
	Again bool
	// Progress is told what takes long, in one line each.
	Progress func(line string)
}

// reportFile is what the learner would have read, in the folder of each answer.
const reportFile = "report.txt"

// errStop ends a run that does not go on after an outcome that is not what it should be.
var errStop = errors.New("stopped")

// run is one call of [Runner.Run].
type run struct {
	*Runner
	answers  []Answer
	next     chan int            // indices of answers
	outcomes []chan Outcome      // by index
	machine  *semaphore.Weighted // held for each answer that is being judged, and each cluster that is being made
}

// Run judges the answers and tells each outcome, in their order, as soon as it is known. An error means
// that not all of them were judged; without KeepGoing that is none.
func (b *Runner) Run(ctx context.Context, answers []Answer, report func(Outcome)) error {
	r := &run{Runner: b, answers: answers, next: make(chan int, len(answers)), machine: semaphore.NewWeighted(int64(b.Parallel))}
	for i := range answers {
		r.next <- i
		r.outcomes = append(r.outcomes, make(chan Outcome, 1))
	}
	close(r.next)
	g, ctx := errgroup.WithContext(ctx)
	for range min(b.Parallel+1, len(answers)) {
		g.Go(func() error { return r.work(ctx) })
	}
	g.Go(func() error { return r.report(ctx, report) })
	if err := g.Wait(); !errors.Is(err, errStop) {
		return err
	}
	return nil
}

// report passes the outcomes on in the order of the answers.
func (r *run) report(ctx context.Context, report func(Outcome)) error {
	for _, outcome := range r.outcomes {
		select {
		case o := <-outcome:
			report(o)
			if len(o.Wrong) > 0 && !r.KeepGoing {
				return errStop
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// work judges one answer after the other on a cluster of its own.
func (r *run) work(ctx context.Context) (err error) {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(ctx, s)) }()
	for i := range r.next {
		if err := r.machine.Acquire(ctx, 1); err != nil {
			return err
		}
		o, err := r.judge(ctx, s.cluster, r.answers[i])
		r.machine.Release(1)
		if err == nil && o.Environment != "" && r.Again {
			s, o, err = r.judgeAgain(ctx, s, r.answers[i], o.Environment)
		}
		if err != nil {
			return fmt.Errorf("judge %d/%s: %w", r.answers[i].Lab, r.answers[i].ID(), err)
		}
		r.outcomes[i] <- o
		if len(r.next) == 0 {
			return nil
		}
		if s, err = r.clean(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// judgeAgain judges an answer once more, on a new cluster, because the machine was to blame the first time.
func (r *run) judgeAgain(ctx context.Context, old slot, a Answer, why string) (s slot, o Outcome, err error) {
	r.Progress(fmt.Sprintf("ENVIRONMENT: %d/%s is judged once more, on a new cluster: %s", a.Lab, a.ID(), why))
	if s, err = r.replace(ctx, old); err != nil {
		return s, o, err
	}
	if err := r.machine.Acquire(ctx, 1); err != nil {
		return s, o, err
	}
	defer r.machine.Release(1)
	o, err = r.judge(ctx, s.cluster, a)
	o.Again = why
	return s, o, err
}

// slot is a cluster, and what brings it back to what it was when it was fresh.
type slot struct {
	cluster *clusters.Cluster
	cleaner *cleaner
}

// open makes a cluster while no more than [Runner.Parallel] others work: an answer that is judged meanwhile would look slow.
func (r *run) open(ctx context.Context) (s slot, err error) {
	if err := r.machine.Acquire(ctx, 1); err != nil {
		return s, err
	}
	defer r.machine.Release(1)
	r.Progress("creating a cluster")
	spec := memcached.Spec(r.NodeImage, r.Clusters, r.Cache)
	spec.Label = "mutants"
	if s.cluster, err = r.Clusters.Create(ctx, spec); err != nil {
		return s, err
	}
	if s.cleaner, err = newCleaner(ctx, s.cluster); err != nil {
		return s, errors.Join(err, r.close(ctx, s))
	}
	return s, nil
}

func (b *Runner) close(ctx context.Context, s slot) error {
	if s.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteLimit)
	defer cancel()
	return b.Clusters.Delete(ctx, s.cluster.Name)
}

// clean makes the cluster what it was, or another one if that does not work: the answer that was judged
// on it may have done anything.
func (r *run) clean(ctx context.Context, s slot) (slot, error) {
	restarted, err := s.cleaner.restarted(ctx)
	if err == nil && !restarted {
		err = s.cleaner.clean(ctx)
	}
	if err == nil && !restarted || ctx.Err() != nil {
		return s, ctx.Err()
	}
	if err != nil {
		r.Progress(fmt.Sprintf("replacing cluster %s: %v", s.cluster.Name, err))
	}
	return r.replace(ctx, s)
}

// replace makes another cluster in place of an old one.
func (r *run) replace(ctx context.Context, old slot) (slot, error) {
	if err := r.close(ctx, old); err != nil {
		return old, err
	}
	return r.open(ctx)
}

// judge gives the verdict on one answer.
func (b *Runner) judge(ctx context.Context, cluster *clusters.Cluster, a Answer) (Outcome, error) {
	dir := filepath.Join(b.State, fmt.Sprintf("%d-%s", a.Lab, a.ID()))
	if a.Run > 0 {
		dir += fmt.Sprintf("-run-%d", a.Run+1)
	}
	if err := os.RemoveAll(dir); err != nil {
		return Outcome{}, fmt.Errorf("forget the last run: %w", err)
	}
	tree, err := a.Render(ctx, b.Course, b.Tools.ControllerGen)
	if err != nil {
		return Outcome{}, err
	}
	workspace := filepath.Join(dir, "workspace")
	if err := tree.WriteTo(workspace); err != nil {
		return Outcome{}, err
	}
	ready := time.Now()
	judge := &verdict.Judge{
		Course: b.Course, State: dir, Cache: b.Cache, Workspace: workspace, Clusters: b.Clusters,
		NodeImage: b.NodeImage, Cluster: cluster, Tools: b.Tools, Seed: b.Seed + int64(a.Run), Storm: b.Storm,
		Unblocked: a.Starter, WithoutReruns: a.Starter,
		Progress: func(string) {}, Ready: func() { ready = time.Now() },
	}
	results, err := judge.Check(ctx, append(slices.Clone(a.Earlier), a.Lab))
	if err != nil {
		return Outcome{}, err
	}
	seconds := time.Since(ready).Seconds()
	if err := b.keepReport(filepath.Join(dir, reportFile), results[len(results)-1]); err != nil {
		return Outcome{}, err
	}
	o := Compare(b.Course, a, results...)
	o.Seconds = seconds
	return o, nil
}

// keepReport writes the report as a learner would see it, for authors who want to read it.
func (b *Runner) keepReport(path string, result *verdict.Result) error {
	lab, err := b.Course.Lab(result.Lab)
	if err != nil {
		return err
	}
	var report bytes.Buffer
	verdict.Print(&report, result, lab, b.Course.Hint)
	if err := os.WriteFile(path, report.Bytes(), 0o600); err != nil {
		return fmt.Errorf("keep report: %w", err)
	}
	return nil
}
