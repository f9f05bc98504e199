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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	proofPackage = "labs/internal/proof"            // does what learners do, on clusters
	gradePackage = "labs/classroom/grade/gradetest" // grades a small class
)

// clusterPackages have tests that start clusters, containers or a browser.
var clusterPackages = []string{
	"clusters/kindtest", "clusters/embeddedtest", "clusters/importtest", "clusters/nodeimage/imagetest",
	"labs/classroom/judge/judgetest", "labs/internal/demo/demotest", "labs/internal/verdict/faulttest",
	"labs/classroom/board/browsertest", proofPackage, gradePackage, "labs/classroom/roomtest",
}

func newTestCommand(a *app) *cobra.Command {
	var all bool
	cmd := cli.Command("test", `Unit tests, then right and wrong answers on real clusters (make test)

It runs what every change has to pass, and ends at the first phase that fails: docs/testing.md. With --all it runs everything and goes
on after a failure; that needs Linux, root, gcc and Chromium.`, cobra.NoArgs, func(ctx context.Context, _ []string) error {
		phases := []phase{
			{"unit tests", a.unitTests(nil, "-timeout=25m")},
			// With the same names and sizes each time; make proof draws them.
			{"right and wrong answers", a.answers(mutantsRun{seed: 42})},
			{"grading", a.clusterTests(2, gradePackage)},
			{"a learner's way", a.clusterTests(2, proofPackage, "-run=^TestLearnersWay$")},
		}
		if all {
			phases = []phase{
				{"unit tests, race detector", a.unitTests([]string{"CGO_ENABLED=1"}, "-race", "-timeout=30m")},
				{"all wrong and right answers", a.answers(mutantsRun{all: true})},
				{"each solution again", a.answers(mutantsRun{only: "solution"})},
			}
			for _, dir := range clusterPackages {
				phases = append(phases, phase{dir, a.clusterTests(8, dir)})
			}
		}
		return a.testPhases(ctx, all, append(phases, phase{"the operator's own tests", a.operatorTests})...)
	})
	cmd.Flags().BoolVar(&all, "all", false, "all tests and all answers (make proof)")
	return cmd
}

// count is how many tests, or judged answers, ended how. Its String is the line that ends a run.
type count struct{ passed, failed int }

func (c count) add(o count) count { return count{c.passed + o.passed, c.failed + o.failed} }

func (c count) String() string { return fmt.Sprintf("%d passed, %d failed", c.passed, c.failed) }

// phase is one part of the tests.
type phase struct {
	name string
	run  func(context.Context) (count, error)
}

// testPhases runs one phase after the other, with goOn also after one that fails. It ends with a table for docs/testing.md, and the sum.
func (a *app) testPhases(ctx context.Context, goOn bool, phases ...phase) error {
	var total count
	table := "| phase | seconds | passed | failed |\n|---|---|---|---|\n"
	for _, p := range phases {
		fmt.Fprintf(a.Out, "== %s\n", p.name)
		started := time.Now()
		n, err := p.run(ctx)
		if err != nil && (!goOn || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			n.failed++ // a phase that could not run has failed
			a.Notice(err.Error())
		}
		total = total.add(n)
		table += fmt.Sprintf("| %s | %.0f | %d | %d |\n", p.name, time.Since(started).Seconds(), n.passed, n.failed)
		if n.failed > 0 && !goOn {
			break
		}
	}
	fmt.Fprintf(a.Out, "== times\n%s%s\n", table, total)
	if total.failed > 0 || total.passed == 0 {
		return exit.ErrFail
	}
	return nil
}

// answers is a phase that judges answers.
func (a *app) answers(run mutantsRun) func(context.Context) (count, error) {
	return func(ctx context.Context) (count, error) { return a.mutants(ctx, run) }
}

// unitTests are the tests of all modules but the operator's, without those of clusterPackages and of labs itself, which is the suite.
func (a *app) unitTests(env []string, flags ...string) func(context.Context) (count, error) {
	others := append([]string{course.LabsDir}, clusterPackages...)
	return func(ctx context.Context) (total count, err error) {
		for _, module := range []string{".", "clusters", "clusters/e2e"} {
			out, err := exec.CommandContext(ctx, "go", "list", "-C", filepath.Join(a.Root, module), "-f", "{{.Dir}}", "./...").Output()
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

// clusterTests are those of a package or a module, on a machine that is set up for n clusters at the same time.
func (a *app) clusterTests(n int, dir string, flags ...string) func(context.Context) (count, error) {
	return func(ctx context.Context) (count, error) {
		_, image, err := a.ReadyKind(ctx, n)
		if err != nil {
			return count{}, err
		}
		env := []string{"NODE_IMAGE=" + image.Ref, "LAB_CACHE=" + a.Cache, "CLASSROOM_LABS=all"}
		return a.goTest(ctx, dir, env, append([]string{"-count=1", "-parallel=2", "-timeout=60m", "."}, flags...)...)
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
	const ref = "operator-lab.local/memcached-operator:test"
	failed, err := verdict.LoadImage(ctx, owned, cluster.Name, filepath.Join(a.Root, "operator"), ref)
	if failed != nil {
		err = errors.New(failed.Output)
	}
	if err != nil {
		return n, fmt.Errorf("build the operator: %w", err)
	}
	programs, err := (&components.Builder{CacheDir: a.Cache, Download: true, Log: a.Progress}).Build(ctx, "etcd", "kube-apiserver")
	if err != nil {
		return n, err
	}
	env := []string{"KUBECONFIG=" + cluster.Kubeconfig, "MEMCACHED_IMAGE=" + memcached.Image, "IMG=" + ref,
		"TEST_ASSET_ETCD=" + programs["etcd"], "TEST_ASSET_KUBE_APISERVER=" + programs["kube-apiserver"]}
	n, err = a.goTest(ctx, "operator", env, "-count=1", "-timeout=10m", "./...")
	if err != nil || n.failed > 0 {
		return n, err
	}
	e2e, err := a.goTest(ctx, "operator/test/e2e-framework", env, "-count=1", "-timeout=10m", ".")
	return n.add(e2e), err
}

// goTest has gotestsum run `go test` in a folder of the checkout. The error is about the run itself. For root, a test that was skipped
// counts as failed, because a suite that silently shrinks proves nothing. For others, tests that need root are skipped.
func (a *app) goTest(ctx context.Context, dir string, env []string, args ...string) (n count, err error) {
	counts, err := os.CreateTemp("", "go-test-")
	if err != nil {
		return n, fmt.Errorf("test %s: %w", dir, err)
	}
	defer func() { _ = errors.Join(counts.Close(), os.Remove(counts.Name())) }()
	tool := []string{
		"tool", "-modfile=" + filepath.Join(a.Root, "scripts", "tools", "go.mod"), "gotestsum", "--format=pkgname", "--format-hide-empty-pkg",
		"--post-run-command=sh -c 'echo $TESTS_TOTAL $TESTS_FAILED $TESTS_SKIPPED >" + counts.Name() + "'", "--",
	}
	cmd := exec.CommandContext(ctx, "go", append(tool, args...)...)
	cmd.Dir, cmd.Env = filepath.Join(a.Root, dir), append(append(os.Environ(), "GOWORK=off"), env...)
	cmd.Stdout, cmd.Stderr = a.Out, a.Err
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGINT) }, 2*time.Minute // tests delete their clusters
	runErr := cmd.Run()
	var total, skipped int
	_, err = fmt.Fscan(counts, &total, &n.failed, &skipped)
	n.passed = max(0, total-n.failed-skipped)
	if os.Geteuid() == 0 {
		n.failed += skipped
	}
	if err = cmp.Or(runErr, err); err != nil && n.failed == 0 {
		n.failed++ // a package does not compile, or its TestMain gave up
	}
	return n, ctx.Err()
}
