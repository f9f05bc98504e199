package verdict

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Judge gives verdicts on one workspace.
type Judge struct {
	Course    *course.Course
	State     string // .lab of the checkout
	Cache     string // the cache folder, where memcached's image is kept
	Workspace string
	Clusters  *clusters.Manager
	NodeImage nodeimage.Image
	// Pool has fresh clusters that are ready; nil makes one.
	Pool *pool.Pool
	// Tools are what [BuildTools] made; the zero value has it make them.
	Tools Tools
	// Seed decides names, sizes and ports; 0 draws a seed.
	Seed int64
	// Keep leaves the cluster running after the verdict, for a look at it.
	Keep bool
	// Unblocked judges the labs' own checks alone, without the opening checks of earlier labs, and never reports one as blocked.
	Unblocked bool
	// Progress is told what takes long, in one line each. It has to be set.
	Progress func(line string)
	// Ready, if it is not nil, is told when the cluster and all programs are there and the checks begin.
	Ready func()
	// Answer, if it is not nil, gets the results as soon as they are known, before the cluster is deleted.
	Answer func(results []*Result, cluster *clusters.Cluster)
}

// run is what the steps of one run share.
type run struct {
	*Judge
	id        string
	started   time.Time
	artifacts string
	scratch   string // a folder for this run
	tools     Tools
	manager   string // the path of the learner's compiled program
	build     *Build // why it does not compile, nil when it does
	cluster   *clusters.Cluster
	watched   bool          // a monitor watches the cluster, or has
	wanted    []*course.Lab // what the suite runs

	removeScratch func()
}

// Check judges labs, which have to be numbers of the course, in one run on one fresh cluster. It writes a result for each of them
// and returns them. An error means that there is no result at all: the run was interrupted, or the machine cannot even keep one.
func (j *Judge) Check(ctx context.Context, labs []int) (results []*Result, err error) {
	r, err := j.newRun()
	if err != nil {
		return nil, err
	}
	defer r.removeScratch()
	defer func() { err = errors.Join(err, r.deleteCluster(ctx, results)) }()
	r.wanted = r.labsFor(labs...)
	if err = r.prepare(ctx); err == nil {
		results, err = r.judge(ctx, labs)
	}
	if err != nil && ctx.Err() == nil {
		results = r.unjudged(ctx, labs, err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, result := range results {
		result.Plain()
	}
	if err := Keep(r.State, results); err != nil {
		return nil, err
	}
	if j.Answer != nil {
		j.Answer(results, r.cluster)
	}
	return results, nil
}

func (j *Judge) newRun() (r *run, err error) {
	own := *j // each run of a Judge without a seed draws one
	r = &run{Judge: &own, started: time.Now()}
	r.id = NewRunID(r.started)
	if r.artifacts, err = makeArtifacts(j.State, r.id); err != nil {
		return nil, err
	}
	sweepScratch()
	r.scratch, r.removeScratch, err = newScratch()
	r.manager = filepath.Join(r.scratch, imageProgram)
	if r.Seed == 0 {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		r.Seed = int64(binary.BigEndian.Uint32(b[:]))
	}
	return r, err
}

// errNotBuilt ends the preparation early: without a program there is nothing to judge.
var errNotBuilt = errors.New("the learner's code does not compile")

// prepare compiles the learner's program, and creates the cluster meanwhile. A cluster of a pool is there at once, so it is only taken
// for a program that compiles: people save half-written files.
func (r *run) prepare(ctx context.Context) error {
	if r.Pool == nil {
		r.Progress("compiling your operator and the checks, and creating a fresh cluster")
	}
	g, both := errgroup.WithContext(ctx)
	compiled := make(chan struct{})
	g.Go(func() (err error) {
		defer close(compiled)
		r.build, err = compilation{workspace: r.Workspace, out: r.manager, unlinked: !r.runsManager(), limit: process.BuildLimit}.build(both)
		if err == nil && r.build != nil {
			err = errNotBuilt
		}
		return err
	})
	g.Go(func() (err error) {
		if r.tools = r.Tools; r.tools.Suite == "" {
			r.tools, err = BuildTools(both, r.Course.Root, r.State)
		}
		if err != nil {
			return err
		}
		return r.generate(both, compiled)
	})
	if r.Pool == nil {
		g.Go(func() error { return r.takeCluster(both) })
	}
	err := g.Wait()
	if r.build != nil {
		return nil
	}
	if err == nil && r.Pool != nil {
		err = r.takeCluster(ctx)
	}
	return err
}

// runsManager says whether a check of this run needs a running manager.
func (r *run) runsManager() bool {
	return slices.ContainsFunc(r.wanted, func(lab *course.Lab) bool { return lab.Has(course.SetupManager) })
}

// needsImage says whether a check of this run has the learner's program run in the cluster.
func (r *run) needsImage() bool { return r.cluster.RealPods && needs(r.wanted, course.NeedsImage) }

// loadImage brings the learner's program onto the nodes: the one that runs here, where it is compiled for Linux, too.
func (r *run) loadImage(ctx context.Context) (*Build, error) {
	if runtime.GOOS == "linux" {
		return nil, loadProgram(ctx, r.Clusters, r.cluster.Name, r.manager, ManagerImage)
	}
	return LoadImage(ctx, r.Clusters, r.cluster.Name, r.Workspace, ManagerImage)
}

// judge runs the suite and makes one result for each lab. An error is not the learner's fault.
func (r *run) judge(ctx context.Context, numbers []int) (results []*Result, err error) {
	if r.build != nil {
		return r.resultsOf(numbers, r.allBlocked("build"), Finding{}), nil
	}
	if r.needsImage() {
		r.Progress("bringing your operator's image onto the node")
		if r.build, err = r.loadImage(ctx); err != nil || r.build != nil {
			return r.resultsOf(numbers, r.allBlocked("build"), Finding{}), err
		}
	}
	r.Progress("checking")
	ended, err := r.runSuite(ctx, numbers)
	if err != nil {
		return nil, err
	}
	checks, broken := classify(ended, r.wanted, r.cluster.RealPods)
	if broken != nil || slices.ContainsFunc(checks, func(c Check) bool { return c.State != Passed && c.State != NotChecked }) {
		if err := fullDisk(ctx, r.Course.Root); err != nil {
			return nil, err
		}
		if problem := unable(checks, numbers); problem != nil {
			return nil, problem
		}
		if broken != nil {
			return nil, broken
		}
	}
	if !r.Unblocked {
		block(checks, r.wanted)
	}
	return r.resultsOf(numbers, checks, Finding{}), nil
}

// runSuite runs the suite while a monitor watches the cluster. When the cluster fails, the monitor ends the suite, whose checks would
// only wait in vain. Then runSuite returns what is certain: see [certain].
func (r *run) runSuite(ctx context.Context, numbers []int) ([]suite.Result, error) {
	monitor, watched, err := r.Clusters.Monitor(ctx, r.cluster)
	if err != nil {
		return nil, err
	}
	defer monitor.End()
	r.watched = true
	if r.Ready != nil {
		r.Ready()
	}
	config := r.config(numbers)
	ended, err := r.tools.RunSuite(watched, config)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	passed := slices.DeleteFunc(slices.Clone(ended), func(result suite.Result) bool { return result.State != suite.Passed })
	if err == nil && len(passed) == len(config.Checks) {
		return ended, nil
	}
	if problem := monitor.Problem(ctx); problem != nil {
		if ended = certain(ended, monitor.Trusted, config.Checks, problem); ended == nil {
			return nil, problem
		}
		return ended, nil
	}
	return ended, err
}

// labsFor are the labs whose checks make up the verdicts on numbers: those, and earlier ones with their opening check alone.
func (r *run) labsFor(numbers ...int) (all []*course.Lab) {
	for _, n := range numbers {
		all = append(all, r.Course.Labs[n-1])
		if !r.Unblocked {
			all = append(all, r.Course.Openings(n)...)
		}
	}
	slices.SortFunc(all, func(a, b *course.Lab) int { // the whole lab before its opening check
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(len(b.Checks), len(a.Checks)))
	})
	return slices.CompactFunc(all, func(a, b *course.Lab) bool { return a.Number == b.Number })
}

// config is the suite's configuration.
func (r *run) config(numbers []int) suite.Config {
	c := suite.Config{
		Workspace: r.Workspace, Kubeconfig: r.cluster.Kubeconfig,
		Generated: r.generated(), Copies: r.copies(), Supervisor: r.tools.Supervisor, MemcachedImage: memcached.Image,
		Disposable: !r.Keep, RealPods: r.cluster.RealPods, Seed: r.Seed, Scratch: r.scratch,
		Artifacts: r.artifacts, Opening: map[int]string{}, Unblocked: r.Unblocked, UnderRole: r.Course.UnderRole(slices.Max(numbers)),
	}
	for _, lab := range r.wanted {
		c.Opening[lab.Number] = lab.Opening().ID
		c.Definition = c.Definition || lab.Has(course.SetupDefinition)
		if lab.Has(course.SetupRegistry) {
			c.Registry = append(c.Registry, lab.Number)
		}
		if lab.Has(course.SetupWebhooks) {
			c.Webhooks = append(c.Webhooks, lab.Number)
		}
		for _, check := range lab.Checks {
			if check.RunsOn(r.cluster.RealPods) {
				c.Checks = append(c.Checks, check.ID)
			}
		}
	}
	if r.runsManager() {
		c.Manager = r.manager
	}
	if r.needsImage() {
		c.ManagerImage = ManagerImage
	}
	return c
}

// resultsOf makes the result of each lab.
func (r *run) resultsOf(numbers []int, checks []Check, environment Finding) (results []*Result) {
	for _, n := range numbers {
		result := &Result{
			Schema: schema, Lab: n, Started: r.started, Seconds: time.Since(r.started).Seconds(),
			Workspace: r.Workspace, Run: r.id, Seed: r.Seed, Artifacts: r.artifacts, Build: r.build,
			Checks: r.checksFor(n, checks), Environment: environment, Verdict: Pass,
		}
		if r.cluster != nil {
			result.Cluster = Cluster{Provider: r.cluster.Provider, Version: r.cluster.Version}
		}
		if problem := unable(result.Checks, []int{n}); problem != nil { // the run has a verdict, as another lab failed; this lab has none
			result.Environment = Finding{Finding: problem.Finding(), Fix: fix.Command(problem)}
		}
		switch {
		case result.Environment.Finding != "":
			result.Verdict = Environment
		case result.Count(Passed)+result.Count(NotChecked) < len(result.Checks):
			result.Verdict = Fail
		}
		results = append(results, result)
	}
	return results
}

// checksFor are the checks that make up the verdict on lab n.
func (r *run) checksFor(n int, all []Check) (checks []Check) {
	for _, lab := range r.labsFor(n) {
		for _, c := range all {
			if slices.ContainsFunc(lab.Checks, func(known course.Check) bool { return known.ID == c.ID }) {
				checks = append(checks, c)
			}
		}
	}
	return checks
}
