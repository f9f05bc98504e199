package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// Lab is the one whose verdicts are measured: the first one that needs a running manager.
	Lab = 4
	// deleteLimit is how long a cluster may take to be deleted, also after an interrupt.
	deleteLimit = 90 * time.Second
)

// Pool hands out clusters that have been waiting, as those of `lab watch` do. *pool.Pool is one.
type Pool interface {
	verdict.Pool
	// Rest returns when clusters wait and the pool has nothing else to do.
	Rest(ctx context.Context) error
}

// Workbench has everything that the measurements work with.
type Workbench struct {
	Course *course.Course
	// State keeps what runs leave, apart from any learner's; Cache is where the operand's archive is kept.
	State, Cache string
	// Engine is the command of the container engine.
	Engine string
	// Ours, Stock and Embedded make clusters as the lab does, as kind does by itself, and of processes.
	Ours, Stock, Embedded *clusters.Owned
	NodeImage             nodeimage.Image
	Tools                 verdict.Tools
	// Pool is where warm verdicts get their clusters. It makes the next one while a verdict is on its way, as it does
	// for a learner. nil measures nothing warm.
	Pool Pool
	// Solution is a workspace with the right answer to [Lab], and Wrong are wrong answers to it in the order in which
	// they are to be judged, WrongEach in each round.
	Solution  string
	Wrong     []mutants.Answer
	WrongEach int
	// Ready measures how soon control planes without containers are ready; see [BuildReady].
	Ready *Ready
	// Settle is how long a new cluster is left alone before its memory is read.
	Settle time.Duration
	// Seed is that of all verdicts.
	Seed int64
}

// Subjects are what is measured in every round.
func (w *Workbench) Subjects() []Subject {
	subjects := []Subject{
		{"stock verdict", w.stockVerdict},
		{"cold verdict", func(ctx context.Context, _ int) ([]Sample, error) { return w.coldVerdict(ctx, GreenCold, w.Ours) }},
		{"embedded verdict", func(ctx context.Context, _ int) ([]Sample, error) {
			return w.coldVerdict(ctx, GreenEmbedded, w.Embedded)
		}},
		{"fresh cluster", func(ctx context.Context, _ int) ([]Sample, error) {
			return w.fresh(ctx, Create, Idle, w.Ours, clusters.Spec{NodeImage: w.NodeImage.Ref})
		}},
		{"fresh stock cluster", func(ctx context.Context, _ int) ([]Sample, error) {
			return w.fresh(ctx, CreateStock, IdleStock, w.Stock, w.StockSpec())
		}},
		{"embedded ready", func(ctx context.Context, _ int) ([]Sample, error) { return w.Ready.measure(ctx, ReadyEmbedded) }},
		{"envtest ready", func(ctx context.Context, _ int) ([]Sample, error) { return w.Ready.measure(ctx, ReadyEnvtest) }},
	}
	if w.Pool != nil {
		subjects = append(subjects, Subject{"warm verdict", w.warmVerdict}, Subject{"red verdicts", w.redVerdicts})
	}
	return subjects
}

// StockSpec is a cluster as kind makes it by itself, of the same node image.
func (w *Workbench) StockSpec() clusters.Spec {
	return clusters.Spec{NodeImage: w.NodeImage.Ref, Config: clusters.StockConfig()}
}

// remove deletes a cluster, also after ctx has ended, and adds to err what went wrong.
func remove(ctx context.Context, owned *clusters.Owned, name string, err *error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteLimit)
	defer cancel()
	*err = errors.Join(*err, owned.Delete(ctx, name))
}

// fresh makes a cluster, leaves it alone, and reads what it needs at rest.
func (w *Workbench) fresh(ctx context.Context, create, idle string, owned *clusters.Owned, spec clusters.Spec) (samples []Sample, err error) {
	clock, began := startWatch(), time.Now()
	c, err := owned.Create(ctx, "bench", spec, false)
	if err != nil {
		return nil, err
	}
	defer remove(ctx, owned, c.Name, &err)
	made := Sample{Series: create, Seconds: time.Since(began).Seconds()}
	// kind's own wait is over before CoreDNS and kube-proxy have begun. Their work belongs to a cluster that can be used.
	if _, err := clusters.WaitReady(ctx, c.Kubeconfig, c.Readiness(), clusters.ReadyTimeout); err != nil {
		return nil, err
	}
	cpu, cpuErr := w.nodesCPU(ctx, c)
	clock.read(&made, cpu, cpuErr)
	if err := pause(ctx, w.Settle); err != nil {
		return nil, err
	}
	bytes, err := w.nodesMemory(ctx, c)
	if err != nil {
		return nil, err
	}
	return []Sample{made, {Series: idle, Bytes: bytes}}, nil
}

// pause waits for a thing that nobody announces: a cluster that comes to rest.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// trial is one verdict that is measured.
type trial struct {
	workspace string
	owned     *clusters.Owned
	pool      *lender // nil for a cluster that is made for it
}

// firstFailure is the part of a verdict from its beginning until somebody who waits is told the first check that fails.
const firstFailure = "first ✗ told after"

// judge takes the time until the answer; deleting a cluster comes after it, as it does for a learner. The sample's
// processor time contains all that the verdict took of the cluster, and where it made one, the making and the end.
func (w *Workbench) judge(ctx context.Context, t trial) (s Sample, result *verdict.Result, err error) {
	var mu sync.Mutex
	var cpu time.Duration
	var cpuErr error
	clock, began := startWatch(), time.Now()
	took := func(part string, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		s.Parts = append(s.Parts, Part{Name: part, Seconds: took.Seconds()})
	}
	told := sync.OnceFunc(func() { took(firstFailure, time.Since(began)) })
	judge := &verdict.Judge{
		Course: w.Course, State: w.State, Cache: w.Cache, Workspace: t.workspace, Clusters: t.owned,
		NodeImage: w.NodeImage, Tools: w.Tools, Seed: w.Seed, Progress: func(string) {},
		Answer: func(_ []*verdict.Result, c *clusters.Cluster) {
			s.Seconds = time.Since(began).Seconds()
			if c != nil {
				cpu, cpuErr = w.nodesCPU(ctx, c)
				cpu -= t.pool.usedBefore(c.Name)
			}
		},
		Heard: func(o verdict.Outcome) {
			if o.State == verdict.Failed {
				told()
			}
		},
		Took: func(part verdict.Part, d time.Duration) { took(string(part), d) },
	}
	if t.pool != nil {
		judge.Pool = t.pool
	}
	results, err := judge.Check(ctx, []int{Lab})
	if err != nil {
		return s, nil, err
	}
	clock.read(&s, cpu, cpuErr)
	if n := results[0].Count(verdict.NotChecked); n > 0 {
		s.Note = joinNotes(s.Note, fmt.Sprintf("%d of %d checks need real Pods and were not asked", n, len(results[0].Checks)))
	}
	return s, results[0], nil
}

// green is judge of a right answer.
func (w *Workbench) green(ctx context.Context, t trial) (Sample, error) {
	t.workspace = w.Solution
	s, result, err := w.judge(ctx, t)
	if err != nil {
		return s, err
	}
	if result.Verdict != verdict.Pass {
		return s, notGreen(result)
	}
	return s, os.RemoveAll(result.Artifacts)
}

// notGreen is the error of a right answer that did not pass. Where the machine is at fault it is a *clusters.Problem.
func notGreen(r *verdict.Result) error {
	if r.Verdict == verdict.Environment {
		return &clusters.Problem{What: "the verdict on a right answer is environment: " + r.Environment.Finding, Mend: r.Environment.Mend}
	}
	if first := r.First(); first != nil {
		return fmt.Errorf("a right answer fails: %s (%s): expected %s; saw %s; artifacts in %s", first.ID, first.Cause, first.Expected, first.Seen, r.Artifacts)
	}
	return fmt.Errorf("a right answer fails; artifacts in %s", r.Artifacts)
}

func (w *Workbench) coldVerdict(ctx context.Context, series string, owned *clusters.Owned) ([]Sample, error) {
	s, err := w.green(ctx, trial{owned: owned})
	s.Series = series
	return []Sample{s}, err
}

func (w *Workbench) warmVerdict(ctx context.Context, _ int) ([]Sample, error) {
	return w.claimed(ctx, GreenWarm, w.green)
}

// redVerdicts judge the wrong answers of a round, each on a cluster of its own.
func (w *Workbench) redVerdicts(ctx context.Context, round int) (samples []Sample, err error) {
	for i := range w.WrongEach {
		answer := w.Wrong[((round-1)*w.WrongEach+i)%len(w.Wrong)]
		taken, err := w.claimed(ctx, Red, func(ctx context.Context, t trial) (Sample, error) { return w.red(ctx, t, answer) })
		if err != nil {
			return samples, fmt.Errorf("%s: %w", answer.ID(), err)
		}
		samples = append(samples, taken...)
	}
	return samples, nil
}

// red is judge of a wrong answer. A verdict that is not what the answer names is an error, however fast it was.
func (w *Workbench) red(ctx context.Context, t trial, answer mutants.Answer) (s Sample, err error) {
	t.workspace = filepath.Join(w.State, "wrong", answer.ID())
	defer func() { err = errors.Join(err, os.RemoveAll(t.workspace)) }()
	tree, err := answer.Render(ctx, w.Course, w.Tools.ControllerGen)
	if err != nil {
		return s, err
	}
	if err := tree.WriteTo(t.workspace); err != nil {
		return s, err
	}
	s, result, err := w.judge(ctx, t)
	if err != nil {
		return s, err
	}
	if wrong := mutants.Compare(w.Course, answer, result).Wrong; len(wrong) > 0 {
		return s, fmt.Errorf("the wrong answer was not caught as it should be: %s; artifacts in %s", wrong[0], result.Artifacts)
	}
	return s, os.RemoveAll(result.Artifacts)
}

// Prepare compiles what the measurements compile, so that none of them pays for a cold cache, removes what a killed run has
// left, and waits for the pool.
func (w *Workbench) Prepare(ctx context.Context) error {
	if err := w.RemoveImage(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "operator-lab-prepare-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := buildManager(ctx, w.Solution, filepath.Join(dir, "manager")); err != nil {
		return err
	}
	if err := compileSuite(ctx, w.Course.Root); err != nil || w.Pool == nil {
		return err
	}
	return w.Pool.Rest(ctx)
}
