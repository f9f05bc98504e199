package verdict

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Judge gives verdicts on one workspace.
type Judge struct {
	Course    *course.Course
	State     string // .lab of the checkout
	Cache     string // for memcached's image
	Workspace string
	Clusters  *clusters.Manager
	NodeImage nodeimage.Image
	// Cluster is a ready cluster to judge on, which stays; nil takes a fresh one, and deletes it.
	Cluster *clusters.Cluster
	// Pool has fresh clusters that are ready; nil makes one.
	Pool *pool.Pool
	// Tools are what [BuildTools] made; the zero value has it make them.
	Tools Tools
	// Seed decides what a run draws; 0 draws the seed itself.
	Seed int64
	// Keep leaves the cluster running after the verdict, for a look at it.
	Keep bool
	// Unblocked shows every failed check in its own right.
	Unblocked bool
	// WithoutReruns leaves out the opening checks of earlier labs.
	WithoutReruns bool
	// Progress is told what takes long, in one line each.
	Progress func(line string)
	// Ready, if it is not nil, is told when the cluster and all programs are there and the checks begin.
	Ready func()
	// OnOutcome, if it is not nil, is told what is certain while other checks are still running, from one goroutine and
	// before Answer. Should the machine turn out to be at fault, the results say so, and what was heard does not count.
	OnOutcome func(Outcome)
	// Answer gets the results as soon as they are known, before the cluster is deleted.
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
	manager   string
	build     *Build
	cluster   *clusters.Cluster
	pooled    bool              // the cluster had been waiting for somebody
	monitor   *clusters.Monitor // over the cluster, while the suite runs
	wanted    []*course.Lab     // what the suite runs
	held      map[int]bool      // the labs that this workspace has passed before
	failing   []string          // the checks that failed last time

	removeScratch func()
}

// Check judges labs, which have to be numbers of the course, in one run on one fresh cluster. It
// writes a result for each of them and returns them. An error means that there is no result at all: the
// run was interrupted, or the machine cannot even keep one.
func (j *Judge) Check(ctx context.Context, labs []int) (results []*Result, err error) {
	r, err := j.newRun()
	if err != nil {
		return nil, r.blamed(ctx, err, labs)
	}
	defer r.removeScratch()
	defer func() { err = errors.Join(err, r.deleteCluster(ctx, results)) }()
	r.wanted = r.suiteLabs(labs)
	events, err := History(r.State, r.Workspace)
	if err != nil {
		return nil, err
	}
	r.held, r.failing = held(events), failing(events, labs)
	if results, err = r.results(ctx, labs); err != nil {
		return nil, err
	}
	for _, result := range results {
		result.Plain()
	}
	if err := keep(r.State, results); err != nil {
		return nil, r.blamed(ctx, err, labs)
	}
	if j.Answer != nil {
		j.Answer(results, r.cluster)
	}
	return results, nil
}

// results judges, or says what kept it from judging.
func (r *run) results(ctx context.Context, labs []int) (results []*Result, err error) {
	if err = r.prepare(ctx); err == nil {
		results, err = r.judge(ctx, labs)
	}
	if ctx.Err() != nil {
		return nil, interrupted(ctx, err)
	}
	if err != nil {
		return r.unjudged(ctx, labs, err)
	}
	return results, nil
}

// keep keeps the results where others find them.
func keep(state string, results []*Result) error {
	for _, result := range results {
		if err := result.Write(state); err != nil {
			return err
		}
	}
	return remember(state, results)
}

// newRun also gives a run with its error, for the blame.
func (j *Judge) newRun() (*run, error) {
	started := time.Now()
	r := &run{Judge: j, started: started, id: newRunID(started)}
	var err error
	if r.artifacts, err = makeArtifacts(j.State, r.id); err != nil {
		return r, err
	}
	sweepScratch()
	r.scratch, r.removeScratch, err = newScratch()
	r.manager = filepath.Join(r.scratch, "manager")
	if j.Seed == 0 {
		j.Seed = newSeed()
	}
	return r, err
}

func newSeed() int64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint32(b[:]))
}

// errNotBuilt ends the preparation early: without a program there is nothing to judge.
var errNotBuilt = errors.New("the learner's code does not compile")

// prepare compiles, and creates the cluster side by side. A cluster of a pool is there at once, so it is only
// taken for a program that does compile: people save what is half written.
func (r *run) prepare(ctx context.Context) error {
	g, both := errgroup.WithContext(ctx)
	compiled := make(chan struct{})
	g.Go(func() (err error) {
		defer close(compiled)
		if r.build, err = r.compile(both); err == nil && r.build != nil {
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
		return r.derive(both, compiled)
	})
	if r.Pool == nil {
		g.Go(func() error { return r.takeCluster(both) })
	}
	err := g.Wait()
	if r.build != nil && ctx.Err() == nil {
		return nil
	}
	if err == nil && r.Pool != nil {
		err = r.takeCluster(ctx)
	}
	return interrupted(ctx, err)
}

// compile compiles the learner's manager, and links it where a check runs it.
func (r *run) compile(ctx context.Context) (*Build, error) {
	return compilation{workspace: r.Workspace, out: r.manager, unlinked: !r.runsManager(), limit: process.BuildLimit}.judge(ctx)
}

// runsManager says whether a check of this run wants a manager.
func (r *run) runsManager() bool {
	return slices.ContainsFunc(r.wanted, func(lab *course.Lab) bool { return lab.Has(course.SetupManager) })
}

// interrupted is err, and the end of ctx where err does not say so itself.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return errors.Join(ctx.Err(), err)
}

// judge runs the suite and makes one result for each lab.
func (r *run) judge(ctx context.Context, numbers []int) ([]*Result, error) {
	if r.build != nil {
		return r.resultsOf(numbers, r.notAsked("build"), Finding{}), nil
	}
	r.Progress("checking")
	if r.Ready != nil {
		r.Ready()
	}
	config := r.config(numbers)
	heard := r.listen(ctx, numbers)
	ended, err := r.monitored(ctx, config)
	heard()
	if err != nil {
		return nil, err
	}
	c := Classify(ended, r.wanted, r.cluster.RealPods)
	if !r.Unblocked {
		Block(c.Checks, r.wanted)
	}
	environment := r.environment(ctx, c, numbers)
	r.keepLogs(ctx, environment)
	results := r.resultsOf(numbers, c.Checks, environment)
	r.addTimelinesAndAdvice(results)
	return results, nil
}

// suiteLabs are the labs to run: those asked for, and the opening checks of earlier ones.
func (r *run) suiteLabs(numbers []int) []*course.Lab {
	labs := map[int]*course.Lab{}
	for _, n := range numbers {
		if r.WithoutReruns {
			break
		}
		for _, earlier := range r.Course.Openings(n) {
			labs[earlier.Number] = earlier
		}
	}
	for _, n := range numbers {
		labs[n] = r.Course.Labs[n-1]
	}
	var all []*course.Lab
	for _, n := range slices.Sorted(maps.Keys(labs)) {
		all = append(all, labs[n])
	}
	return all
}

// config is the suite's configuration.
func (r *run) config(numbers []int) suite.Config {
	c := suite.Config{
		Workspace: r.Workspace, Kubeconfig: r.cluster.Kubeconfig,
		Generated: r.generated(), Copies: r.copies(), Supervisor: r.tools.Supervisor, MemcachedImage: memcached.Image,
		Disposable: r.Cluster == nil && !r.Keep, RealPods: r.cluster.RealPods, Seed: r.Seed, Scratch: r.scratch,
		Artifacts: r.artifacts,
	}
	c.Opening, c.Unblocked = map[int]string{}, r.Unblocked
	for _, lab := range r.wanted {
		c.Labs = append(c.Labs, lab.Number)
		c.Opening[lab.Number] = lab.Opening().ID
		c.Definition = c.Definition || lab.Has(course.SetupDefinition)
		if lab.Has(course.SetupRegistry) {
			c.Registry = append(c.Registry, lab.Number)
		}
		for _, check := range lab.Checks {
			c.Checks = append(c.Checks, check.ID)
			if !r.cluster.RealPods && check.NeedsPods() {
				c.Unjudged = append(c.Unjudged, check.ID)
			}
		}
	}
	if r.runsManager() {
		c.Manager = r.manager
	}
	c.UnderRole = r.Course.UnderRole(slices.Max(numbers))
	return c
}

func verdictOf(r *Result) Verdict {
	switch {
	case r.Environment.Finding != "":
		return Environment
	case r.Count(Failed) > 0 || r.Count(Blocked) > 0 || r.Build != nil:
		return Fail
	default:
		return Pass
	}
}

// checksFor are the checks that make up the verdict on lab n: its own, and the opening checks of earlier labs.
func (r *run) checksFor(n int, all []Check) []Check {
	again := map[string]bool{}
	if !r.WithoutReruns {
		for _, earlier := range r.Course.Openings(n) {
			again[earlier.Opening().ID] = true
		}
	}
	var own []Check
	for _, c := range all {
		if again[c.ID] || c.Lab == n {
			c.Regression = again[c.ID] && r.held[c.Lab]
			own = append(own, c)
		}
	}
	return own
}

// resultsOf makes the result of each lab.
func (r *run) resultsOf(numbers []int, checks []Check, environment Finding) []*Result {
	var results []*Result
	for _, n := range numbers {
		result := &Result{
			Schema: schema, Lab: n, Started: r.started, Seconds: time.Since(r.started).Seconds(),
			Workspace: r.Workspace, Run: r.id, Seed: r.Seed, Artifacts: r.artifacts, Build: r.build,
			Checks: r.checksFor(n, checks), Environment: environment,
		}
		if r.cluster != nil {
			result.Cluster = Cluster{Provider: r.cluster.Provider, Version: r.cluster.Version, Pooled: r.pooled}
		}
		result.Verdict = verdictOf(result)
		results = append(results, result)
	}
	return results
}
