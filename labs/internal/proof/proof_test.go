// Package proof shows on real clusters that the course is right: each step's checks fail on its
// starter, every one in its own right, and hold on its solution, together with those of all steps
// before. `make proof` runs it, `make test` the learner's way only; it needs a container engine and a node image.
package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

const root = "../../.."

// TestMain has every answer judged as on a hardened account, where others may read no new file: programs of learners run as users
// of their own.
func TestMain(m *testing.M) {
	syscall.Umask(0o077)
	os.Exit(m.Run())
}

func TestSolutionsPass(t *testing.T) {
	c := load(t)
	for _, lab := range c.Labs {
		t.Run(fmt.Sprintf("lab-%d", lab.Number), func(t *testing.T) {
			t.Parallel()
			results := judge(t, c, lab.Number, upTo(lab.Number), false)
			for _, r := range results {
				requirePass(t, r)
			}
		})
	}
}

// A starter is the solution of the step before, the same stage of the course, of which TestSolutionsPass shows that
// everything before holds.
func TestStartersFail(t *testing.T) {
	c := load(t)
	for _, lab := range c.Labs {
		t.Run(fmt.Sprintf("lab-%d", lab.Number), func(t *testing.T) {
			t.Parallel()
			for _, r := range judge(t, c, lab.Number-1, []int{lab.Number}, true) {
				requireEveryCheckFails(t, c, r)
			}
		})
	}
}

// A right answer to the first labs that was not rendered from ours, with an empty program: they judge
// types, generated code and manifests.
func TestARightAnswerInOtherWordsPasses(t *testing.T) {
	t.Parallel()
	c := load(t)
	workspace := workspacetest.New(t, workspacetest.Write("cmd/main.go", "package main\n\nfunc main() {}\n"))
	for _, r := range judgeFolder(t, c, workspace, upTo(3), false) {
		requirePass(t, r)
	}
}

// A role that borrows the name of Kubernetes' own has the rights of its rules all the same, and they are too few here.
func TestARoleWithABorrowedNameBorrowsNoRights(t *testing.T) {
	t.Parallel()
	c := load(t)
	workspace := coursetest.Stage(t, c, 7)
	coursetest.Write(t, workspace, suite.RolePath, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: cluster-admin
rules:
- apiGroups: [cache.example.com]
  resources: [memcacheds]
  verbs: [get, list, watch]
`)
	j := newJudge(t, c)
	// The role is stale, too, and that would keep the check from being asked.
	j.Workspace, j.WithoutReruns, j.Unblocked = workspace, true, true
	results, err := j.Check(t.Context(), []int{7})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(results[0].Checks, func(c verdict.Check) bool { return c.ID == "works-under-role" })
	if i < 0 || results[0].Checks[i].Cause != "not-synced" {
		t.Errorf("works-under-role does not say that rights are missing:\n%s", describe(results[0]))
	}
}

func load(t *testing.T) *course.Course {
	t.Helper()
	return coursetest.Load(t, root)
}

func upTo(n int) []int {
	labs := make([]int, n)
	for i := range labs {
		labs[i] = i + 1
	}
	return labs
}

// judge renders a stage into a folder of its own and judges labs on it, on a fresh cluster.
func judge(t *testing.T, c *course.Course, stage int, labs []int, starter bool) []*verdict.Result {
	t.Helper()
	return judgeFolder(t, c, coursetest.Stage(t, c, stage), labs, starter)
}

// judgeFolder judges labs on whatever is in the folder, on a fresh cluster.
func judgeFolder(t *testing.T, c *course.Course, workspace string, labs []int, starter bool) []*verdict.Result {
	t.Helper()
	j := newJudge(t, c)
	j.Workspace, j.Unblocked, j.WithoutReruns = workspace, starter, starter
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

func newJudge(t *testing.T, c *course.Course) *verdict.Judge {
	t.Helper()
	state := filepath.Join(c.Root, ".lab")
	manager, err := clusters.New(state)
	if err != nil {
		t.Fatal(err)
	}
	image, err := nodeimage.Resolve(t.Context(), manager.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	built, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	return &verdict.Judge{
		Tools: built, Course: c, State: filepath.Join(state, "proof", strings.ReplaceAll(t.Name(), "/", "-")), Cache: t.TempDir(),
		Clusters: manager, NodeImage: image, Progress: func(line string) { t.Log(line) },
	}
}

func requirePass(t *testing.T, r *verdict.Result) {
	t.Helper()
	if r.Verdict == verdict.Pass {
		return
	}
	t.Errorf("lab %d on the right answer is %s\n%s", r.Lab, r.Verdict, describe(r))
}

// requireEveryCheckFails wants each check of the lab itself to say no.
func requireEveryCheckFails(t *testing.T, c *course.Course, r *verdict.Result) {
	t.Helper()
	wrong := mutants.Compare(c, mutants.Answer{Lab: r.Lab, Starter: true}, r).Wrong
	if len(wrong) > 0 {
		t.Errorf("lab %d on its starter:\n%s\n%s", r.Lab, strings.Join(wrong, "\n"), describe(r))
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
