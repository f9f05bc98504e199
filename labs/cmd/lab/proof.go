package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/proof/gotest"
	"github.com/example/operator-lab/labs/internal/suite"
)

// libraryPackages are the same for the library's modules, by their folders.
var libraryPackages = map[string][]string{
	"clusters": {"./embeddedtest", "./importtest", "./kindtest", "./nodeimage/imagetest"},
}

// clusterPackages have tests that need a container engine and a node image.
var clusterPackages = []string{
	"./labs/classroom/judge/judgetest", "./labs/internal/demo/demotest", "./labs/internal/verdict/faulttest", proofPackage,
}

// roomPackage plays a classroom of four, in which nothing but the instructor is in reach.
const roomPackage = "./labs/classroom/roomtest"

// browserModule looks at the board in Chromium. It is a module of its own.
const browserModule = "labs/classroom/board/browsertest"

const (
	// clusterTestLimit bounds all cluster tests together; it is far from what they take.
	clusterTestLimit = 60 * time.Minute
	// proofClusters is how many clusters the cluster tests have at the same time: five side by side, and those of a
	// test that runs beside them.
	proofClusters = 8
	// proofRuns is how often each solution is judged in a row, and proofStorms how often that of stormLab, in a long storm.
	proofRuns, proofStorms = 3, 5
	stormLab               = 5
)

func newProofCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "proof",
		Short: "For authors: everything that can be asked, in two and a half hours (make proof)",
		Long: `proof asks everything: unit tests under the race detector, pages in a browser, all tests on fresh clusters with
faults and hostile workspaces, small rooms, all wrong and right answers, solutions again and again, long storms, the
operator's own tests, linters, other platforms. With --yes it installs what that needs. It goes on after a failure, and
ends with a table for docs/testing.md. It takes two and a half hours on two cores.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.proof(cmd.Context()) },
	}
}

func (a *app) proof(ctx context.Context) error {
	seed := 1 + rand.Int64N(1<<31)
	fmt.Fprintf(a.Out, "%s, commit %s, seed %d\n", time.Now().UTC().Format(time.DateOnly), a.commit(ctx), seed)
	return a.testPhases(ctx, true,
		phase{"setup", "", a.proofSetUp},
		phase{"unit tests, race detector", "", a.raceTests},
		phase{"pages in a browser", "Chromium", a.browserTests},
		phase{"cluster tests", "kind, embedded", a.clusterTests},
		phase{"a classroom", cli.Embedded, a.roomTests},
		phase{"all wrong and right answers", cli.Kind, func(ctx context.Context) (gotest.Count, error) {
			return counted(a.mutants(ctx, mutantsRun{all: true, seed: seed, keepGoing: true, parallel: 1}))
		}},
		phase{fmt.Sprintf("each solution %d times", proofRuns), cli.Kind, func(ctx context.Context) (gotest.Count, error) {
			return counted(a.mutants(ctx, mutantsRun{only: "solution", repeat: proofRuns, seed: seed, keepGoing: true, parallel: 1}))
		}},
		phase{fmt.Sprintf("%d long storms", proofStorms), cli.Kind, func(ctx context.Context) (gotest.Count, error) {
			return counted(a.mutants(ctx, mutantsRun{
				only: "solution", lab: stormLab, repeat: proofStorms, storm: suite.StormLong, seed: seed, keepGoing: true, parallel: 1,
			}))
		}},
		phase{"the operator's own tests", cli.Kind, a.operatorTests},
		phase{"linters", "", func(ctx context.Context) (gotest.Count, error) { return asOne(a.make(ctx, "lint")) }},
		phase{"generated files, other platforms", "", func(ctx context.Context) (gotest.Count, error) { return asOne(a.verify(ctx, false)) }},
	)
}

// asOne counts a phase that either holds as a whole or does not.
func asOne(err error) (gotest.Count, error) {
	if err != nil {
		return gotest.Count{}, err
	}
	return gotest.Count{Passed: 1}, nil
}

// raceTests are the unit tests under the race detector.
func (a *app) raceTests(ctx context.Context) (gotest.Count, error) {
	return a.testUnits(ctx, []string{"CGO_ENABLED=1"}, "-race", "-timeout=30m")
}

// proofTools are programs that only the proof needs, and the Debian packages that have them.
var proofTools = map[string]string{"cc": "gcc", "chromium": "chromium", "shellcheck": "shellcheck"}

// proofSetUp brings what the proof needs, as far as somebody has agreed to it, such as CI. What is then missing, the phase
// that needs it says.
func (a *app) proofSetUp(ctx context.Context) (gotest.Count, error) {
	var missing []string
	for program, pkg := range proofTools {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	slices.Sort(missing)
	install := "apt-get update && apt-get install -y --no-install-recommends " + strings.Join(missing, " ")
	_, err := exec.LookPath("apt-get")
	switch {
	case len(missing) == 0:
	case err != nil || !a.Consents() || os.Geteuid() != 0:
		a.Progress("missing, and some phases will fail without: " + install)
	default:
		a.Progress(install)
		cmd := exec.CommandContext(ctx, "sh", "-c", install)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive"), a.Err, a.Err
		if err := cmd.Run(); err != nil {
			return gotest.Count{}, exit.Environment(fmt.Errorf("%s: %w", install, err))
		}
	}
	return a.testSetup(proofClusters)(ctx)
}

func (a *app) browserTests(ctx context.Context) (gotest.Count, error) {
	return gotest.Run{
		Dir: filepath.Join(a.Root, browserModule), Args: []string{"-count=1", "-timeout=15m", "."}, Env: []string{"GOWORK=off"}, Out: a.Out,
	}.Test(ctx)
}

func (a *app) clusterTests(ctx context.Context) (gotest.Count, error) {
	total, err := a.clusterTest(ctx, ".", nil, append(slices.Clone(clusterPackages), gradePackage)...)
	for module, list := range libraryPackages {
		if err != nil {
			break
		}
		var count gotest.Count
		count, err = a.clusterTest(ctx, module, nil, list...)
		total = total.Add(count)
	}
	return total, err
}

// roomTests do all labs in a classroom.
func (a *app) roomTests(ctx context.Context) (gotest.Count, error) {
	return a.clusterTest(ctx, ".", []string{"CLASSROOM_LABS=all"}, roomPackage)
}

// make calls a target of the Makefile.
func (a *app) make(ctx context.Context, target string) error {
	cmd := exec.CommandContext(ctx, "make", target)
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.Root, a.Out, a.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make %s: %w", target, err)
	}
	return nil
}
