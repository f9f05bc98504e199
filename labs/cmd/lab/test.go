package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/image"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/proof/gotest"
)

// proofPackage judges the whole course on fresh clusters, and has the learner's way in it.
const proofPackage = "./labs/internal/proof"

// gradePackage grades a small class, hostile programs among it. It needs a container engine.
const gradePackage = "./labs/classroom/grade/gradetest"

// gateSeed draws names and sizes, always the same ones: what is drawn anew belongs to `make proof`.
const gateSeed = 42

func newTestCommand(a *app) *cobra.Command {
	var unit bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "For authors: unit tests, then every step of the course on real clusters (make test)",
		Long: `test asks what every change is asked, in the order in which answers come quickest, and ends at the first phase that
fails: unit tests; of each lab the starter, the solution and one wrong answer, on kind clusters that are cleaned between
two of them; grading; the learner's way from a red verdict to a green one; the operator's own tests.
It takes about twelve minutes on two cores. make proof asks everything else.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			phases := []phase{{"unit tests", "", a.unitTests}}
			if !unit {
				phases = append(phases,
					phase{"setup", "", a.testSetup(gateClusters)},
					phase{"each lab's starter, solution and a wrong answer", cli.Kind, a.gateAnswers},
					phase{"grading", "containers, embedded", a.gradeTests},
					phase{"a learner's way", cli.Kind, a.learnersWay},
					phase{"the operator's own tests", cli.Kind, a.operatorTests})
			}
			return a.testPhases(cmd.Context(), false, phases...)
		},
	}
	cmd.Flags().BoolVar(&unit, "unit", false, "only the tests that need no cluster")
	return cmd
}

// gateClusters is how many clusters `lab test` has at the same time: one in use, and one that is cleaned.
const gateClusters = 2

// phase is one part of the tests: its name and what it runs on, for the table, "" for this machine alone.
type phase struct {
	name, on string
	run      func(context.Context) (gotest.Count, error)
}

// testPhases runs one phase after the other, up to the first one that fails unless it is told to go on, and adds up. What
// ends a run before its tests, such as an engine that cannot be had, is its error.
func (a *app) testPhases(ctx context.Context, goOn bool, phases ...phase) error {
	var total gotest.Count
	var broken error
	rows := []string{"| phase | on | seconds | passed | failed |", "|---|---|---|---|---|"}
	for _, p := range phases {
		fmt.Fprintf(a.Out, "== %s\n", p.name)
		started := time.Now()
		count, err := p.run(ctx)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			count.Failed++ // what could not be asked did not hold
		}
		total = total.Add(count)
		rows = append(rows, fmt.Sprintf("| %s | %s | %.0f | %d | %d |", p.name, p.on, time.Since(started).Seconds(), count.Passed, count.Failed+count.Skipped))
		if !goOn && count.Bad() != nil {
			broken = err
			break
		}
		if err != nil {
			fmt.Fprintln(a.Err, "lab:", plain.Text(err.Error()))
		}
	}
	if left := len(phases) - len(rows) + 2; left > 0 {
		rows = append(rows, fmt.Sprintf("| (%d phases were not run) | | | | |", left))
	}
	fmt.Fprintf(a.Out, "== times\n%s\n%s\n", strings.Join(rows, "\n"), total)
	if broken != nil {
		return broken
	}
	if total.Err() != nil {
		fmt.Fprintln(a.Err, "lab:", total.Err())
		return exit.ErrFail
	}
	return nil
}

// unitModules are the folders of the modules whose unit tests belong to the course and the library.
func unitModules() []string { return []string{".", "clusters", "clusters/e2e"} }

// unitTests run everything that needs no cluster.
func (a *app) unitTests(ctx context.Context) (gotest.Count, error) {
	return a.testUnits(ctx, nil, "-timeout=15m")
}

func (a *app) testUnits(ctx context.Context, env []string, args ...string) (total gotest.Count, err error) {
	for _, module := range unitModules() {
		packages, err := a.unitPackages(ctx, module)
		if err != nil {
			return total, err
		}
		count, err := gotest.Run{Dir: filepath.Join(a.Root, module), Args: slices.Concat(args, packages), Env: env, Out: a.Out}.Test(ctx)
		total = total.Add(count)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// unitPackages are the packages of a module whose tests need neither a container engine nor a browser.
func (a *app) unitPackages(ctx context.Context, module string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "./...")
	cmd.Dir = filepath.Join(a.Root, module)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w", module, err)
	}
	others := slices.Concat(clusterPackages, libraryPackages[module], []string{gradePackage, roomPackage})
	return slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		_, rel, _ := strings.Cut(p, path.Join("operator-lab", module)+"/")
		// labs itself is the suite, which `lab check` runs and the proof judges.
		return rel == "labs" || slices.Contains(others, "./"+rel)
	}), nil
}

// testSetup prepares the machine for n clusters at the same time.
func (a *app) testSetup(n int) func(context.Context) (gotest.Count, error) {
	return func(ctx context.Context) (gotest.Count, error) { return gotest.Count{}, a.SetUp(ctx, n) }
}

// gateAnswers judge the starter, the solution and one wrong answer of each lab.
func (a *app) gateAnswers(ctx context.Context) (gotest.Count, error) {
	return counted(a.mutants(ctx, mutantsRun{gate: true, keepGoing: true, seed: gateSeed, parallel: gateClusters - 1}))
}

// counted is what a phase returns that says by its error, too, that something failed: that is in the count.
func counted(count gotest.Count, err error) (gotest.Count, error) {
	if errors.Is(err, exit.ErrFail) && count.Failed > 0 {
		err = nil
	}
	return count, err
}

// clusterTest runs Go tests of a module that may have clusters, two at a time: packages one after the other, their tests by
// two. env is added to the environment.
func (a *app) clusterTest(ctx context.Context, module string, env []string, args ...string) (gotest.Count, error) {
	all := append([]string{"-count=1", "-p=1", "-parallel=2", "-timeout=" + clusterTestLimit.String()}, args...)
	env = append([]string{"NODE_IMAGE=" + a.NodeImage, "LAB_CACHE=" + a.Cache}, env...)
	return gotest.Run{Dir: filepath.Join(a.Root, module), Args: all, Env: env, Out: a.Out}.Test(ctx)
}

func (a *app) gradeTests(ctx context.Context) (gotest.Count, error) {
	return a.clusterTest(ctx, ".", nil, gradePackage)
}

// learnersWay is one lab as a learner does it, with the command alone, on a fresh cluster.
func (a *app) learnersWay(ctx context.Context) (gotest.Count, error) {
	return a.clusterTest(ctx, ".", nil, "-run=^TestALearnersWay$", proofPackage)
}

// operatorTests run the finished operator's own tests on a cluster: those of its functions, and then the end-to-end tests,
// for which it is deployed.
func (a *app) operatorTests(ctx context.Context) (count gotest.Count, err error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return count, err
	}
	spec := a.Spec(owned, image)
	spec.Label = "operator"
	cluster, err := owned.Create(ctx, spec)
	if err != nil {
		return count, err
	}
	defer func() { err = errors.Join(err, deleteCluster(ctx, owned, cluster)) }()
	env := []string{"KUBECONFIG=" + cluster.Kubeconfig, "MEMCACHED_IMAGE=" + memcached.Image, "GOWORK=off"}
	operator := filepath.Join(a.Root, "operator")
	count, err = gotest.Run{Dir: operator, Args: []string{"-count=1", "-timeout=10m", "./..."}, Env: env, Out: a.Out}.Test(ctx)
	if err != nil || count.Failed > 0 {
		return count, err
	}
	if err := a.loadOperator(ctx, owned.Provider(), cluster.Name); err != nil {
		return count, err
	}
	e2e := gotest.Run{
		Dir: filepath.Join(operator, "test", "e2e"), Args: []string{"-count=1", "-timeout=10m", "."},
		Env: append(env, "IMG="+operatorImage), Out: a.Out,
	}
	fromOutside, err := e2e.Test(ctx)
	return count.Add(fromOutside), err
}

// operatorImage is the image that the end-to-end tests deploy.
const operatorImage = "operator-lab.local/memcached-operator:test"

// loadOperator builds the finished operator, and brings its image to the nodes of a cluster.
func (a *app) loadOperator(ctx context.Context, provider clusters.Provider, name string) error {
	dir, err := os.MkdirTemp("", "operator-")
	if err != nil {
		return fmt.Errorf("build the operator: %w", err)
	}
	defer os.RemoveAll(dir)
	program, archive := filepath.Join(dir, "manager"), filepath.Join(dir, "image.tar")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd")
	build.Dir, build.Env = filepath.Join(a.Root, "operator"), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the operator: %w: %s", err, out)
	}
	if err := image.WriteProgram(archive, operatorImage, program); err != nil {
		return err
	}
	return provider.LoadImageArchive(ctx, name, archive)
}
