package verdict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	// procs is how many checks run side by side, each in a Ginkgo process with a manager of its own. They mostly wait
	// for the cluster, so there may be more of them than cores.
	procs = 5
	// suiteLimit bounds one run of the suite, whatever happens in it.
	suiteLimit = 10 * time.Minute
	// suiteFile is Ginkgo's report as JSON, in the run's artifacts.
	suiteFile = "suite.json"
	// suiteGrace is how long an interrupted suite may clean up before it is killed.
	suiteGrace = 15 * time.Second
)

// RunSuite runs the checks of config.Labs once, on the cluster that config opens, and returns Ginkgo's
// report. A failed check is not an error; a suite that could not report is. Where the manager cannot run several times on
// one machine, one process runs all checks.
func (t Tools) RunSuite(ctx context.Context, config suite.Config) (types.Report, error) {
	report, err := t.runSuite(ctx, config, min(procs, len(judged(config))))
	if ctx.Err() != nil {
		return report, err
	}
	switch once, failed := suite.RunsOnlyOnce(config.Artifacts); {
	case failed != nil:
		return report, failed
	case once:
		return t.runSuite(ctx, config, 1)
	}
	return report, err
}

// outputLimit is how much of what the suite prints is kept: a learner's manager has a say in it.
const outputLimit = 1 << 20

func (t Tools) runSuite(ctx context.Context, config suite.Config, procs int) (types.Report, error) {
	path, err := writeConfig(config)
	if err != nil {
		return types.Report{}, err
	}
	reports := filepath.Join(config.Artifacts, suiteFile)
	cmd := exec.CommandContext(ctx, t.Ginkgo, "run",
		"--procs="+strconv.Itoa(procs), "--label-filter="+labelFilter(config), "--no-color", "--keep-going",
		"--fail-on-empty", "--fail-on-pending", "--timeout="+suiteLimit.String(), "--grace-period=10s",
		"--randomize-all", fmt.Sprintf("--seed=%d", config.Seed%1_000_000),
		"--output-dir="+config.Artifacts, "--json-report="+filepath.Base(reports), t.Suite)
	cmd.Dir = config.Artifacts
	cmd.Env = append(os.Environ(), suite.ConfigEnv+"="+path)
	process.Own(cmd, syscall.SIGTERM)
	killWhenLost(ctx, cmd)
	cmd.WaitDelay = suiteGrace
	output := &process.Tail{Limit: outputLimit}
	cmd.Stdout, cmd.Stderr = output, output
	runErr := cmd.Run()
	logErr := os.WriteFile(filepath.Join(config.Artifacts, "suite.log"), []byte(plain.Text(output.String())), 0o600)
	process.Kill(cmd)
	if ctx.Err() != nil {
		return types.Report{}, ctx.Err()
	}
	report, err := readReport(reports)
	if err != nil {
		return report, errors.Join(fmt.Errorf("run the suite: %w\n%s", err, lastLines(output.String())), runErr, logErr)
	}
	return report, nil
}

// DryRun has the suite list its checks in Ginkgo's report, and run none of them. It needs no cluster; of config it takes
// what decides about the order of checks, and Artifacts, the folder to write to.
func (t Tools) DryRun(ctx context.Context, config suite.Config) (types.Report, error) {
	path, err := writeConfig(config)
	if err != nil {
		return types.Report{}, err
	}
	report := filepath.Join(config.Artifacts, suiteFile)
	cmd := exec.CommandContext(ctx, t.Suite, "--ginkgo.dry-run", "--ginkgo.json-report="+report)
	cmd.Dir = config.Artifacts
	cmd.Env = append(os.Environ(), suite.ConfigEnv+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return types.Report{}, fmt.Errorf("list the checks: %w\n%s", err, out)
	}
	return readReport(report)
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// judged are the checks of the run that the cluster can judge.
func judged(config suite.Config) []string {
	return slices.DeleteFunc(slices.Clone(config.Checks), func(id string) bool { return slices.Contains(config.Unjudged, id) })
}

// labelFilter selects them.
func labelFilter(config suite.Config) string {
	return fmt.Sprintf("/^%s(%s)$/", suite.CheckLabel, strings.Join(judged(config), "|"))
}

func writeConfig(config suite.Config) (string, error) {
	data, err := json.MarshalIndent(config, "", " ")
	if err != nil {
		return "", fmt.Errorf("write run configuration: %w", err)
	}
	path := filepath.Join(config.Artifacts, "run.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("write run configuration: %w", err)
	}
	return path, nil
}
