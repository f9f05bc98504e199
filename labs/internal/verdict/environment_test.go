package verdict_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// provider makes one cluster, or fails to.
type provider struct {
	clusters.Provider
	cluster *clusters.Cluster
	fails   error
}

func (p provider) Create(context.Context, string, clusters.Spec) (*clusters.Cluster, error) {
	return p.cluster, p.fails
}

func (provider) Delete(context.Context, string) error              { return nil }
func (provider) List(context.Context) ([]string, error)            { return nil, nil }
func (provider) CollectLogs(context.Context, string, string) error { return nil }
func (provider) Identity() string                                  { return "test" }
func (provider) Nodes(context.Context, string) ([]clusters.Node, error) {
	return nil, errors.ErrUnsupported
}

func TestNoClusterIsEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		labs    []int
		problem clusters.Problem
		fix     string
	}{
		"no engine":      {[]int{2}, clusters.Problem{What: "docker does not answer", Reason: clusters.ErrNoEngine}, "make setup"},
		"broken cluster": {[]int{2}, clusters.Problem{What: "the API server is not ready", Reason: clusters.ErrBroken}, "make lab-2"},
		"several labs":   {[]int{1, 2}, clusters.Problem{What: "the API server is not ready", Reason: clusters.ErrBroken}, "make labs"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(t, provider{fails: &tc.problem})
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

func TestInterruptLeavesNoResult(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	j := newJudge(t, provider{fails: errors.New("no cluster")})
	if results, err := j.Check(ctx, []int{2}); results != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Check() = %v, %v, want the interrupt alone", results, err)
	}
	if _, err := verdict.Read(j.State, j.Workspace, 2); err == nil {
		t.Error("an interrupted run left a result")
	}
}

// The API server does not answer any more when the suite ends. What failed while it still did is the learner's.
func TestCertainFailureOutlastsCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		result string // of the check takes-name
		want   verdict.Verdict
	}{
		"failed before":      {`"state":"failed","ended":"2001-01-01T00:00:00Z"`, verdict.Fail},
		"failed afterwards":  {`"state":"failed","ended":"2901-01-01T00:00:00Z"`, verdict.Environment},
		"late, machine busy": {`"state":"failed","ended":"2001-01-01T00:00:00Z","load":40`, verdict.Environment},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			coursetest.Write(t, dir, "kubeconfig", `{"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`)
			j := newJudge(t, provider{cluster: &clusters.Cluster{Name: "lab-test", Provider: "test", Kubeconfig: filepath.Join(dir, "kubeconfig"), Nodes: 1}})
			line := fmt.Sprintf(`{"run":"a","check":"takes-name","finding":{"cause":"silent","expected":"a name","seen":"none"},%s}`, tc.result)
			script := "#!/bin/sh\necho '" + line + "' > results.jsonl\n" // in place of the supervisor, which runs Ginkgo
			j.Tools.Supervisor = filepath.Join(dir, "supervisor")
			if err := os.WriteFile(j.Tools.Supervisor, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			results, err := j.Check(t.Context(), []int{2})
			if err != nil {
				t.Fatal(err)
			}
			if r := results[0]; r.Verdict != tc.want {
				t.Errorf("the verdict is %s, want %s: %+v", r.Verdict, tc.want, r)
			}
		})
	}
}

// newJudge judges the solution of the second lab of a small course.
func newJudge(t *testing.T, p clusters.Provider) *verdict.Judge {
	t.Helper()
	c := coursetest.Load(t, coursetest.New(t))
	manager, err := clusters.New(t.TempDir(), clusters.WithProvider(p))
	if err != nil {
		t.Fatal(err)
	}
	return &verdict.Judge{
		Course: c, State: t.TempDir(), Workspace: coursetest.Stage(t, c, 2), Tools: verdict.Tools{Suite: "none"},
		Clusters: manager, NodeImage: nodeimage.Image{Ref: "none", Images: []string{memcached.Image}},
		Progress: func(line string) { t.Log(line) },
	}
}
