package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/image"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
)

// The folders of tests that are more than unit tests.
const (
	proofPackage   = "labs/internal/proof"              // does what learners do, on clusters
	gradePackage   = "labs/classroom/grade/gradetest"   // grades a small class
	roomPackage    = "labs/classroom/roomtest"          // plays a classroom, in which nothing but the instructor is in reach
	browserModule  = "labs/classroom/board/browsertest" // looks at the board in Chromium
	operatorModule = "operator"                         // needs a cluster
)

// clusterPackages have tests that need a container engine and a node image, beside those above.
var clusterPackages = []string{
	"clusters/kindtest", "clusters/embeddedtest", "clusters/importtest", "clusters/nodeimage/imagetest",
	"labs/classroom/judge/judgetest", "labs/internal/demo/demotest", "labs/internal/verdict/faulttest",
}

// unitModules have unit tests.
var unitModules = []string{".", "clusters", "clusters/e2e"}

// gateSeed draws names and sizes, always the same ones: what is drawn anew belongs to `make proof`.
const gateSeed = 42

func newTestCommand(a *app) *cobra.Command {
	var unit bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Unit tests, then every step of the course on real clusters (make test)",
		Long:  "test asks what every change is asked, and ends at the first phase that fails: docs/testing.md. make proof asks everything else.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			phases := []phase{{"unit tests", "", a.unitTests(nil, "-timeout=15m")}}
			if !unit {
				phases = append(phases,
					phase{"setup", "", a.setUp(2)},
					phase{"right and wrong answers", "embedded, kind", a.answers(mutantsRun{repeat: 1, seed: gateSeed})},
					phase{"grading", "containers, embedded", a.clusterTests(gradePackage)},
					phase{"a learner's way", cli.Kind, a.clusterTests(proofPackage, "-run=^TestLearnersWay$")},
					phase{"the operator's own tests", cli.Kind, a.operatorTests})
			}
			return a.testPhases(cmd.Context(), false, phases...)
		},
	}
	cmd.Flags().BoolVar(&unit, "unit", false, "only the tests that need no cluster")
	return cmd
}

// phase is one part of the tests: its name and what it runs on, for the table, "" for this machine alone.
type phase struct {
	name, on string
	run      func(context.Context) (count, error)
}

// testPhases runs one phase after the other, up to the first one that fails unless it is told to go on, and adds up.
func (a *app) testPhases(ctx context.Context, goOn bool, phases ...phase) error {
	var total count
	table := "| phase | on | seconds | passed | failed |\n|---|---|---|---|---|\n"
	for _, p := range phases {
		fmt.Fprintf(a.Out, "== %s\n", p.name)
		started := time.Now()
		n, err := p.run(ctx)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			n.failed++ // what could not be asked did not hold
			fmt.Fprintln(a.Err, "labdev:", plain.Text(err.Error()))
		}
		total = total.add(n)
		table += fmt.Sprintf("| %s | %s | %.0f | %d | %d |\n", p.name, p.on, time.Since(started).Seconds(), n.passed, n.failed)
		if !goOn && n.failed > 0 {
			fmt.Fprintf(a.Out, "== times\n%s%s\n", table, total)
			return errors.Join(exit.ErrTold, cmp.Or(err, exit.ErrFail))
		}
	}
	fmt.Fprintf(a.Out, "== times\n%s%s\n", table, total)
	if total.failed > 0 || total.passed == 0 {
		return exit.ErrFail
	}
	return nil
}

// setUp prepares the machine for n clusters of kind at the same time.
func (a *app) setUp(n int) func(context.Context) (count, error) {
	return func(ctx context.Context) (count, error) { return count{}, a.SetUp(ctx, n) }
}

// unitTests are all tests that need neither a container engine nor a browser.
func (a *app) unitTests(env []string, flags ...string) func(context.Context) (count, error) {
	others := append(slices.Clone(clusterPackages), proofPackage, gradePackage, roomPackage, course.LabsDir) // labs itself is the suite
	return func(ctx context.Context) (total count, err error) {
		for _, name := range unitModules {
			module := filepath.Join(a.Root, name)
			list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "./...")
			list.Dir = module
			out, err := list.Output()
			if err != nil {
				return total, fmt.Errorf("list the packages of %s: %w", module, err)
			}
			packages := slices.DeleteFunc(strings.Fields(string(out)), func(dir string) bool {
				rel, err := filepath.Rel(a.Root, dir)
				return err != nil || slices.Contains(others, filepath.ToSlash(rel))
			})
			n, err := a.goTest(ctx, module, env, append(slices.Clone(flags), packages...)...)
			if total = total.add(n); err != nil {
				return total, err
			}
		}
		return total, nil
	}
}

// clusterTests are those of a package or a module. They may have two clusters at a time.
func (a *app) clusterTests(dir string, flags ...string) func(context.Context) (count, error) {
	return func(ctx context.Context) (count, error) {
		_, image, err := a.ReadyKind(ctx, 2)
		if err != nil {
			return count{}, err
		}
		env := []string{"NODE_IMAGE=" + image.Ref, "LAB_CACHE=" + a.Cache, "CLASSROOM_LABS=all"}
		return a.goTest(ctx, filepath.Join(a.Root, dir), env, append([]string{"-count=1", "-parallel=2", "-timeout=60m", "."}, flags...)...)
	}
}

// operatorTests run the finished operator's own tests on a cluster: those of its functions, and then the end-to-end tests, for which
// it is deployed.
func (a *app) operatorTests(ctx context.Context) (n count, err error) {
	owned, nodeImage, err := a.ReadyKind(ctx, 1)
	if err != nil {
		return n, err
	}
	spec := a.Spec(owned, nodeImage)
	spec.Label = "operator"
	cluster, err := owned.Create(ctx, spec)
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, cli.Delete(ctx, owned, cluster)) }()
	dir, env := filepath.Join(a.Root, operatorModule), []string{"KUBECONFIG=" + cluster.Kubeconfig, "MEMCACHED_IMAGE=" + memcached.Image}
	n, err = a.goTest(ctx, dir, env, "-count=1", "-timeout=10m", "./...")
	if err != nil || n.failed > 0 {
		return n, err
	}
	scratch, err := os.MkdirTemp("", "operator-")
	if err != nil {
		return n, fmt.Errorf("build the operator: %w", err)
	}
	defer os.RemoveAll(scratch)
	const ref = "operator-lab.local/memcached-operator:test"
	program, archive := filepath.Join(scratch, "manager"), filepath.Join(scratch, "image.tar")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return n, fmt.Errorf("build the operator: %w: %s", err, out)
	}
	if err := image.WriteProgram(archive, ref, program); err != nil {
		return n, err
	}
	if err := owned.Provider().LoadImageArchive(ctx, cluster.Name, archive); err != nil {
		return n, err
	}
	e2e, err := a.goTest(ctx, filepath.Join(dir, "test", "e2e"), append(env, "IMG="+ref), "-count=1", "-timeout=10m", ".")
	return n.add(e2e), err
}
