// Package proof does what learners and their programs do, on real clusters: the command as a learner types it, programs that break or
// are slow, a busy machine, a command that is killed. Wrong answers, starters and solutions are judged by package mutants.
// `make proof` runs it, `make test` the learner's way only; it needs a container engine and a node image.
package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

const root = "../../.."

// TestMain judges as on a hardened account, where others may read no new file: programs of learners run as users of their own.
func TestMain(m *testing.M) {
	syscall.Umask(0o077)
	os.Exit(m.Run())
}

// A right answer to the first labs may share nothing with ours, and have an empty program: they judge types, generated code and
// manifests.
func TestFirstLabsNeedNoProgram(t *testing.T) {
	workspace := workspacetest.New(t, workspacetest.Write("cmd/main.go", "package main\n\nfunc main() {}\n"))
	requirePass(t, judge(t, workspace, 1, 2, 3))
}

// Each is the solution of lab 7, or of lab 5, with a program that is unlike ours.
func TestUnusualProgramsPass(t *testing.T) {
	for name, tc := range map[string]struct {
		lab  int
		edit func(t *testing.T, workspace string)
	}{
		// Where everything is slow, a right operator takes as long as this to start, and for a pass.
		"slow": {7, func(t *testing.T, workspace string) {
			coursetest.Write(t, workspace, "cmd/slow.go", "package main\n\nimport \"time\"\n\nfunc init() { time.Sleep(2 * time.Second) }\n")
			coursetest.Write(t, workspace, "internal/controller/slow.go",
				"package controller\n\nimport \"time\"\n\nfunc slow() { time.Sleep(80 * time.Millisecond) }\n")
			replace(t, workspace, "internal/controller/memcached_controller.go", "(ctrl.Result, error) {\n", "(ctrl.Result, error) {\n\tslow()\n")
		}},
		// It has no flags and a port of its own, so two of it cannot run on one machine.
		"fixed port": {5, func(t *testing.T, workspace string) {
			coursetest.Write(t, workspace, "cmd/port.go", fmt.Sprintf(`package main

import "os"

func init() {
	if len(os.Args) == 2 && os.Args[1] == "-h" {
		os.Exit(0)
	}
	os.Args = []string{os.Args[0], "--health-probe-bind-address=127.0.0.1:%d"}
}
`, 30000+rand.IntN(2768))) // above the ports that checks choose, and below those that the kernel chooses
		}},
		// It elects a leader whatever its flags say. The lease of a process that was killed stays.
		"leader election": {5, func(t *testing.T, workspace string) {
			replace(t, workspace, "cmd/main.go", "LeaderElection:         enableLeaderElection,",
				`LeaderElection: enableLeaderElection || true, LeaderElectionNamespace: "default",`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := coursetest.Stage(t, load(t), tc.lab)
			tc.edit(t, workspace)
			requirePass(t, judge(t, workspace, 4, tc.lab))
		})
	}
}

// A role that has the name of one of Kubernetes' own has the rights of its rules all the same, and they are too few here.
func TestRoleNamedClusterAdmin(t *testing.T) {
	workspace := coursetest.Stage(t, load(t), 7)
	coursetest.Write(t, workspace, suite.RolePath, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: cluster-admin
rules:
- apiGroups: [cache.example.com]
  resources: [memcacheds]
  verbs: [get, list, watch]
`)
	j := newJudge(t)
	// The role is stale, too, and that would keep the check from being asked.
	j.Workspace, j.Unblocked = workspace, true
	results, err := j.Check(t.Context(), []int{7})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(results[0].Checks, func(c verdict.Check) bool { return c.ID == "works-under-role" })
	if i < 0 || results[0].Checks[i].Cause != "not-synced" {
		t.Errorf("works-under-role does not say that rights are missing:\n%s", describe(results[0]))
	}
}

// The guide for authors adds a lab. Its starter fails for the cause that the check gives, and its solution passes.
func TestAuthoringExampleIsJudged(t *testing.T) {
	const module, guide = "github.com/example/operator-lab/", "labs/13-annotate/"
	checkout := filepath.Join(t.TempDir(), "checkout")
	coursetest.CopyCheckout(t, root, checkout)
	coursetest.Write(t, checkout, guide+"lab.yaml", coursetest.Example(t, root, "title: "))
	coursetest.Write(t, checkout, guide+"checks.go", coursetest.Example(t, root, "// Package annotate"))
	replace(t, checkout, "labs/suite_test.go", "import (\n", "import (\n\t_ \""+module+strings.TrimSuffix(guide, "/")+"\"\n")
	const shape = "\tlabels := labelsFor(memcached)\n\tdeployment.Labels"
	replace(t, checkout, "operator/internal/controller/deployment.go", shape, coursetest.Example(t, root, "\t// lab:13 begin")+shape)
	j := newJudge(t)
	j.Course = coursetest.Load(t, checkout)
	built, err := verdict.BuildTools(t.Context(), checkout, filepath.Join(checkout, ".lab"))
	if err != nil {
		t.Fatal(err)
	}
	j.Tools = built
	for stage, want := range map[int]verdict.Verdict{12: verdict.Fail, 13: verdict.Pass} {
		j.Workspace = coursetest.Stage(t, j.Course, stage)
		results, err := j.Check(t.Context(), []int{13})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if first := r.First(); r.Verdict != want || want == verdict.Fail && (first == nil || first.Cause != "no-annotation") {
			t.Errorf("stage %d is %s\n%s", stage, r.Verdict, describe(r))
		}
	}
}

func load(t *testing.T) *course.Course {
	t.Helper()
	return coursetest.Load(t, root)
}

// replace changes a file of a workspace in one place.
func replace(t *testing.T, workspace, name, old, text string) {
	t.Helper()
	before := coursetest.Read(t, workspace, name)
	if !strings.Contains(before, old) {
		t.Fatalf("%s has no %q", name, old)
	}
	coursetest.Write(t, workspace, name, strings.Replace(before, old, text, 1))
}

// judge judges labs on what is in the folder, on a fresh control plane.
func judge(t *testing.T, workspace string, labs ...int) []*verdict.Result {
	t.Helper()
	j := newJudge(t)
	j.Workspace = workspace
	results, err := j.Check(t.Context(), labs)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// tools are built once for all runs: they are the same programs.
var tools = sync.OnceValues(func() (verdict.Tools, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return verdict.Tools{}, err
	}
	return verdict.BuildTools(context.Background(), dir, filepath.Join(dir, ".lab", "proof"))
})

func newJudge(t *testing.T) *verdict.Judge {
	t.Helper()
	c := load(t)
	state := filepath.Join(c.Root, ".lab", "proof", strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	cache, err := components.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	manager, err := embedded.NewManager(state, cache, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	built, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	return &verdict.Judge{
		Tools: built, Course: c, State: state, Cache: cache, Clusters: manager, Progress: func(line string) { t.Log(line) },
	}
}

func requirePass(t *testing.T, results []*verdict.Result) {
	t.Helper()
	for _, r := range results {
		if r.Verdict != verdict.Pass {
			t.Errorf("lab %d on a right answer is %s\n%s", r.Lab, r.Verdict, describe(r))
		}
	}
}

func describe(r *verdict.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "build: %v\nenvironment: %s\nartifacts: %s\n", r.Build, r.Environment.Finding, r.Artifacts)
	for _, c := range r.Checks {
		if c.State != verdict.Passed {
			fmt.Fprintf(&b, "%s %s (%s): expected %s; saw %s\n", c.State, c.ID, c.Cause, c.Expected, c.Seen)
		}
	}
	return b.String()
}
