//go:build linux

package faulttest

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/setup/private"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	root = "../../../.."
	// lab is the one that is judged: the first with a manager, and its solution, so that nothing but the
	// machine can be at fault.
	lab = 4
)

// fixture is a machine to break: a private engine, and what a run needs on it.
type fixture struct {
	engine   *private.Engine
	image    nodeimage.Image
	course   *course.Course
	tools    verdict.Tools
	state    string
	solution string
	clusters *clusters.Owned
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := coursetest.Load(t, root)
	image, err := nodeimage.Resolve(t.Context(), "docker", os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := verdict.BuildTools(t.Context(), c.Root, filepath.Join(c.Root, ".lab", "proof"))
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{engine: private.New(t, c.Root), image: image, course: c, tools: tools, state: t.TempDir()}
	b.engine.Limit(disk)
	b.engine.Start()
	t.Setenv("DOCKER_HOST", b.engine.Host)
	kind, err := clusters.NewKind(b.state, clusters.WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	b.clusters = clusters.NewOwned(b.state, kind)
	b.solution = coursetest.Stage(t, c, lab)
	return b
}

// create makes a cluster that several runs share.
func (b *fixture) create(t *testing.T) *clusters.Cluster {
	t.Helper()
	c, err := b.clusters.Create(t.Context(), "faults", clusters.Spec{NodeImage: b.image.Ref}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.delete(t, c.Name) })
	return c
}

func (b *fixture) delete(t *testing.T, name string) {
	t.Helper()
	if err := b.clusters.Delete(context.WithoutCancel(t.Context()), name); err != nil {
		t.Errorf("delete cluster %s: %v", name, err)
	}
}

// fault is one way in which a machine fails a run.
type fault struct {
	// cluster is to be judged on; nil makes a fresh one for the run.
	cluster *clusters.Cluster
	// breaks is done in the middle of the checks; nil means that it is done already.
	breaks func()
	// heals is done after the verdict, where others need what was broken.
	heals func()
	// says is a regular expression for a part of the finding, fix a part of the
	// command that fixes it.
	says, fix string
	// limit is for the verdict, from the moment of breaking; 0 is [answerLimit].
	limit time.Duration
	// passing says that it is over by itself so soon that the checks may hold after all.
	passing bool
	// orphans says that the run's cluster cannot be removed before the machine is healed.
	orphans bool
}

// answer is what a run gives.
type answer struct {
	results []*verdict.Result
	err     error
}

// fails wants a run on the broken machine to end as environment, and soon; never as fail.
func (b *fixture) fails(t *testing.T, f fault) {
	t.Helper()
	ready, done := make(chan struct{}), make(chan answer, 1)
	j := &verdict.Judge{
		Course: b.course, State: b.state, Cache: t.TempDir(), Workspace: b.solution, Tools: b.tools,
		Clusters: b.clusters, NodeImage: b.image, Cluster: f.cluster, WithoutReruns: true,
		Progress: func(line string) { t.Log(line) }, Ready: func() { close(ready) },
	}
	limit := cmp.Or(f.limit, answerLimit)
	started := time.Now()
	go func() {
		results, err := j.Check(t.Context(), []int{lab})
		done <- answer{results, err}
	}()
	if f.breaks != nil {
		select {
		case <-ready:
		case a := <-done:
			t.Fatalf("the run ended before its checks began: %+v", a)
		}
		began := time.Now()
		b.awaitWork(t)
		limit = max(limit, answerShare*time.Since(began))
		f.breaks()
		started = time.Now()
	}
	a := <-done
	took := time.Since(started)
	if f.heals != nil {
		f.heals()
	}
	if f.orphans {
		b.removeOrphans(t)
	}
	requireEnvironment(t, a, f, took, limit)
	t.Logf("answered in %.1f s", took.Seconds())
}

func requireEnvironment(t *testing.T, a answer, f fault, took, limit time.Duration) {
	t.Helper()
	if a.err != nil || len(a.results) != 1 {
		t.Fatalf("the run gives %v and the error %v, want one result", a.results, a.err)
	}
	r := a.results[0]
	t.Logf("%s: %s\nfix: %s\nartifacts: %s", r.Verdict, r.Environment.Finding, r.Environment.Fix, r.Artifacts)
	if f.passing && r.Verdict == verdict.Pass {
		return
	}
	if r.Verdict != verdict.Environment {
		t.Errorf("the verdict is %s, want environment", r.Verdict)
	}
	if !regexp.MustCompile(f.says).MatchString(r.Environment.Finding) {
		t.Errorf("the finding does not say %q", f.says)
	}
	if !strings.Contains(r.Environment.Fix, f.fix) {
		t.Errorf("it is fixed by %q, want %q", r.Environment.Fix, f.fix)
	}
	if took > limit {
		t.Errorf("the verdict took %s, want at most %s", took, limit)
	}
}

// current is the cluster that is being judged on.
func (b *fixture) current(t *testing.T) *clusters.Cluster {
	t.Helper()
	owners, err := b.clusters.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range owners {
		if owner.Cluster != nil {
			return owner.Cluster
		}
	}
	t.Fatal("no cluster is recorded")
	return nil
}

// removeOrphans deletes what a run had to leave, as the next command of the lab would.
func (b *fixture) removeOrphans(t *testing.T) {
	t.Helper()
	b.delete(t, b.current(t).Name)
}

// awaitWork returns when a check has begun to work: it has made itself a namespace.
func (b *fixture) awaitWork(t *testing.T) {
	t.Helper()
	config, err := clusters.RESTConfig(b.current(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	now, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	w, err := client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		ns, ok := event.Object.(*corev1.Namespace)
		if ok && event.Type == "ADDED" && strings.HasPrefix(ns.Name, "lab-") && ns.Name != "lab-system" {
			return
		}
	}
	t.Fatalf("no check began within %s", answerLimit)
}

// awaitHealthy returns when the cluster is well again.
func (b *fixture) awaitHealthy(t *testing.T, c *clusters.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		err := clusters.Healthy(ctx, b.clusters.Provider(), c)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the cluster does not recover: %v", err)
		case <-tick.C:
		}
	}
}
