package main

import (
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

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/gotest"
)

// clusterPackages have tests that need a container engine and a node image. All others run without.
var clusterPackages = []string{
	"./clusters/setup/enginetest", "./clusters/kindtest", "./clusters/e2e/e2etest", "./clusters/nodeimage/imagetest",
	"./clusters/embeddedtest", "./labs/internal/demo/demotest", "./labs/internal/verdict/faulttest", islandPackage, "./labs/internal/proof",
	"./labs/internal/sandbox/sandboxtest", "./labs/internal/grade/gradetest",
}

// islandPackage does labs from a handout, of which all take as long as a lesson.
const islandPackage = "./labs/internal/desk/islandtest"

// browserPackages have tests that look at pages in Chromium.
var browserPackages = []string{"./labs/internal/board/boardtest"}

// clusterTestLimit bounds all cluster tests together; it is far from what they take.
const clusterTestLimit = 60 * time.Minute

func newTestCommand(a *app) *cobra.Command {
	var unit, handouts bool
	cmd := &cobra.Command{
		Use:    "test",
		Short:  "For authors: unit tests, then every step of the course on real clusters",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if handouts {
				return a.testPhases(cmd.Context(), phase{"labs from a handout", a.handoutTests})
			}
			return a.test(cmd.Context(), unit)
		},
	}
	cmd.Flags().BoolVar(&unit, "unit", false, "only the tests that need no cluster")
	cmd.Flags().BoolVar(&handouts, "handouts", false,
		"only all labs from a handout, where nothing but the room's server can be reached; needs Linux and root")
	return cmd
}

// phase is one part of the tests, with a name for the table of times.
type phase struct {
	name string
	run  func(context.Context) (gotest.Count, error)
}

func (a *app) test(ctx context.Context, unit bool) error {
	phases := []phase{{"unit tests", a.unitTests}, {"pages in a browser", a.browserTests}}
	if !unit {
		phases = append(phases, phase{"setup", a.testSetup}, phase{"cluster tests", a.clusterTests}, phase{"wrong answers", a.wrongAnswers}, phase{"the operator's own tests", a.operatorTests})
	}
	return a.testPhases(ctx, phases...)
}

// testPhases runs one phase after the other, and adds up.
func (a *app) testPhases(ctx context.Context, phases ...phase) error {
	var total gotest.Count
	var times []string
	for _, p := range phases {
		fmt.Fprintf(a.out, "== %s\n", p.name)
		started := time.Now()
		count, err := p.run(ctx)
		total = total.Add(count)
		times = append(times, fmt.Sprintf("%7.1f s  %s", time.Since(started).Seconds(), p.name))
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "== times\n%s\n%s\n", strings.Join(times, "\n"), total)
	if total.Err() != nil {
		fmt.Fprintln(a.err, "lab:", total.Err())
		return exit.ErrFail
	}
	return nil
}

// unitTests run everything that needs no cluster.
func (a *app) unitTests(ctx context.Context) (gotest.Count, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "./...")
	cmd.Dir = a.root
	out, err := cmd.Output()
	if err != nil {
		return gotest.Count{}, fmt.Errorf("list packages: %w", err)
	}
	packages := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		_, rel, _ := strings.Cut(p, "operator-lab/")
		// labs itself is the suite, which `lab check` runs and the proof judges.
		return rel == "labs" || slices.Contains(clusterPackages, "./"+rel) || slices.Contains(browserPackages, "./"+rel)
	})
	return gotest.Run{Dir: a.root, Args: append([]string{"-timeout=15m"}, packages...), Out: a.out}.Test(ctx)
}

// browserTests bring a browser when there is none and somebody has agreed to it, such as CI. Without one they
// fail, and say how to get it.
func (a *app) browserTests(ctx context.Context) (gotest.Count, error) {
	_, noBrowser := exec.LookPath("chromium")
	if apt, err := exec.LookPath("apt-get"); noBrowser != nil && err == nil && a.yes && os.Geteuid() == 0 {
		a.progress("installing Chromium, to look at the board with")
		cmd := exec.CommandContext(ctx, apt, "install", "-y", "chromium")
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive"), a.err, a.err
		if err := cmd.Run(); err != nil {
			return gotest.Count{}, exit.Environment(fmt.Errorf("install Chromium: %w; apt-get update && apt-get install chromium", err))
		}
	}
	// Alone and after the others: they measure how quick the page is.
	return gotest.Run{Dir: a.root, Args: append([]string{"-timeout=15m"}, browserPackages...), Out: a.out}.Test(ctx)
}

func (a *app) testSetup(ctx context.Context) (gotest.Count, error) {
	return gotest.Count{}, a.setUp(ctx)
}

// clusterTests run at most two clusters at a time: packages one after the other, their tests by two.
func (a *app) clusterTests(ctx context.Context) (gotest.Count, error) {
	args := append([]string{"-count=1", "-p=1", "-parallel=2", "-timeout=" + clusterTestLimit.String()}, clusterPackages...)
	env := []string{"NODE_IMAGE=" + a.nodeImage, "LAB_CACHE=" + a.cache}
	return gotest.Run{Dir: a.root, Args: args, Env: env, Out: a.out}.Test(ctx)
}

// handoutTests do all labs from a handout.
func (a *app) handoutTests(ctx context.Context) (gotest.Count, error) {
	args := []string{"-count=1", "-timeout=" + clusterTestLimit.String(), islandPackage}
	env := []string{"HANDOUT_LABS=all", "LAB_CACHE=" + a.cache}
	return gotest.Run{Dir: a.root, Args: args, Env: env, Out: a.out}.Test(ctx)
}

// wrongAnswers judge a sample: all of them take longer than anybody waits for CI (make mutants ALL=1).
func (a *app) wrongAnswers(ctx context.Context) (gotest.Count, error) {
	count, err := a.mutants(ctx, mutantsRun{keepGoing: true, parallel: 1})
	if errors.Is(err, exit.ErrFail) {
		err = nil // it is in the count
	}
	return count, err
}

// operatorTests run the finished operator's own tests, as a learner would: with a KUBECONFIG.
func (a *app) operatorTests(ctx context.Context) (count gotest.Count, err error) {
	owned, image, err := a.ready(ctx)
	if err != nil {
		return count, err
	}
	cluster, err := owned.Create(ctx, "operator", clusters.Spec{NodeImage: image.Ref}, false)
	if err != nil {
		return count, err
	}
	defer func() {
		if deleteErr := owned.Delete(context.WithoutCancel(ctx), cluster.Name); err == nil {
			err = deleteErr
		}
	}()
	env := []string{"KUBECONFIG=" + cluster.Kubeconfig, "MEMCACHED_IMAGE=" + nodeimage.Operand, "GOWORK=off"}
	return gotest.Run{Dir: filepath.Join(a.root, "operator"), Args: []string{"-count=1", "-timeout=10m", "./..."}, Env: env, Out: a.out}.Test(ctx)
}
