package verdict_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// refusing is a provider that can make no cluster.
type refusing struct {
	clusters.Provider
	because error
}

func (p refusing) Create(context.Context, string, clusters.Spec) (*clusters.Cluster, error) {
	return nil, p.because
}

func (refusing) Delete(context.Context, string) error   { return nil }
func (refusing) List(context.Context) ([]string, error) { return nil, nil }
func (refusing) Identity() string                       { return "refusing" }

func TestARunWithoutAClusterEndsAsEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		labs    []int
		problem clusters.Problem
		fix     string
	}{
		"the engine is gone":     {[]int{4}, clusters.Problem{What: "docker does not answer", Reason: clusters.ErrNoEngine}, "make setup"},
		"the cluster is broken":  {[]int{4}, clusters.Problem{What: "the API server is not ready", Reason: clusters.ErrBroken}, "make lab-4"},
		"so it is for more labs": {[]int{1, 2}, clusters.Problem{What: "the API server is not ready", Reason: clusters.ErrBroken}, "make labs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJudge(t, refusing{because: &tc.problem})
			answered := false
			j.Answer = func([]*verdict.Result, *clusters.Cluster) { answered = true }
			results, err := j.Check(t.Context(), tc.labs)
			if err != nil || len(results) != len(tc.labs) || !answered {
				t.Fatalf("Check() = %v, %v, want a result for each lab, and that it was told", results, err)
			}
			for _, r := range results {
				kept, err := verdict.Read(j.State, j.Workspace, r.Lab)
				if err != nil {
					t.Fatal(err)
				}
				if kept.Verdict != verdict.Environment || kept.Environment.Finding != tc.problem.What || !strings.Contains(kept.Environment.Fix, tc.fix) {
					t.Errorf("lab %d is %s, %+v, want environment, %q and %q", r.Lab, kept.Verdict, kept.Environment, tc.problem.What, tc.fix)
				}
				if len(kept.Checks) == 0 || kept.Count(verdict.Blocked) != len(kept.Checks) {
					t.Errorf("checks = %+v, want all of them, and none of them judged", kept.Checks)
				}
			}
		})
	}
}

func TestAnInterruptedRunLeavesNoResult(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	j := newJudge(t, refusing{because: &clusters.Problem{What: "docker does not answer"}})
	if results, err := j.Check(ctx, []int{4}); results != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Check() = %v, %v, want the interrupt alone", results, err)
	}
	if _, err := verdict.Read(j.State, j.Workspace, 4); err == nil {
		t.Error("an interrupted run left a result")
	}
}

// newJudge judges the solution of lab 4 on clusters of a provider that makes none.
func newJudge(t *testing.T, p clusters.Provider) *verdict.Judge {
	t.Helper()
	c, err := course.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := c.Render(4)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := tree.WriteTo(filepath.Join(dir, "workspace")); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	manager, err := clusters.New(state, clusters.WithProvider(p))
	if err != nil {
		t.Fatal(err)
	}
	return &verdict.Judge{
		Course: c, State: state, Workspace: filepath.Join(dir, "workspace"), Tools: verdict.Tools{Suite: "none"},
		Clusters: manager, NodeImage: nodeimage.Image{Ref: "none", Images: []string{memcached.Image}},
		Progress: func(line string) { t.Log(line) },
	}
}
