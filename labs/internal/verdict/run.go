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
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// procs is how many checks run side by side, each in a Ginkgo process with a manager of its own. They mostly wait
	// for the cluster, so there may be more of them than cores.
	procs = 5
	// suiteLimit bounds one run of the suite, whatever happens in it.
	suiteLimit = 10 * time.Minute
	// suiteGrace is how long an interrupted suite may clean up before it is killed.
	suiteGrace = 15 * time.Second
)

// RunSuite runs the checks of config.Labs once, on the cluster that config opens, and returns their results. A failed check is
// not an error; a suite that could not report is. Where the manager cannot run several times on one machine, one process runs
// all checks.
func (t Tools) RunSuite(ctx context.Context, config suite.Config) ([]suite.Result, error) {
	results := filepath.Join(config.Artifacts, suite.ResultsFile)
	ended := t.runSuite(ctx, config, min(procs, len(judged(config))))
	lines, err := (&suite.Reader{Path: results}).Next()
	if slices.ContainsFunc(lines, func(r suite.Result) bool { return r.State == suite.Restart }) && ctx.Err() == nil {
		logs, _ := filepath.Glob(filepath.Join(config.Artifacts, suite.ManagerLogs))
		for _, file := range append(logs, filepath.Join(config.Artifacts, trace.File)) {
			_ = os.Remove(file) // it would be taken for what the next run has written
		}
		ended = t.runSuite(ctx, config, 1)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		lines, err = suite.ReadResults(results)
	}
	if err != nil || len(lines) == 0 {
		return nil, errors.Join(err, ended)
	}
	return lines, nil
}

// outputLimit is how much of what the suite prints is kept: a learner's manager has a say in it.
const outputLimit = 1 << 20

// runSuite returns how Ginkgo ended, which is an error after a check that failed, too.
func (t Tools) runSuite(ctx context.Context, config suite.Config, procs int) error {
	path, err := writeConfig(config)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, t.Ginkgo, "run",
		"--procs="+strconv.Itoa(procs), "--label-filter="+labelFilter(config), "--no-color", "--keep-going",
		"--fail-on-empty", "--fail-on-pending", "--timeout="+suiteLimit.String(), "--grace-period=10s",
		"--randomize-all", fmt.Sprintf("--seed=%d", config.Seed%1_000_000),
		t.Suite)
	cmd.Dir = config.Artifacts
	cmd.Env = append(os.Environ(), suite.ConfigEnv+"="+path)
	process.Own(cmd, syscall.SIGTERM)
	killWhenLost(ctx, cmd)
	cmd.WaitDelay = suiteGrace
	output := &process.Tail{Limit: outputLimit}
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	logErr := os.WriteFile(filepath.Join(config.Artifacts, "suite.log"), []byte(plain.Text(output.String())), 0o600)
	process.Kill(cmd)
	if err != nil {
		return errors.Join(fmt.Errorf("run the suite: %w\n%s", err, lastLines(output.String())), logErr)
	}
	return logErr
}

// DryRun has the suite list its checks in Ginkgo's report, and run none of them. It needs no cluster; of config it takes
// what decides about the order of checks, and Artifacts, the folder to write to.
func (t Tools) DryRun(ctx context.Context, config suite.Config) (types.Report, error) {
	path, err := writeConfig(config)
	if err != nil {
		return types.Report{}, err
	}
	report := filepath.Join(config.Artifacts, "suite.json")
	cmd := exec.CommandContext(ctx, t.Suite, "--ginkgo.dry-run", "--ginkgo.json-report="+report)
	cmd.Dir = config.Artifacts
	cmd.Env = append(os.Environ(), suite.ConfigEnv+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return types.Report{}, fmt.Errorf("list the checks: %w\n%s", err, out)
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return types.Report{}, fmt.Errorf("list the checks: %w", err)
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return types.Report{}, fmt.Errorf("list the checks: %w", err)
	}
	if len(reports) != 1 {
		return types.Report{}, fmt.Errorf("list the checks: there are %d suites", len(reports))
	}
	return reports[0], nil
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
