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
	// outputLimit is how much of what the suite prints is kept: a learner's manager has a say in it.
	outputLimit = 1 << 20
)

// RunSuite runs config.Checks once, on the cluster that config opens, and returns their results. A failed check is not an error; a
// suite that could not report is. When ctx ends, the results so far come with the error. Where the manager cannot run several times
// on one machine, one process runs all checks.
func (t Tools) RunSuite(ctx context.Context, config suite.Config) ([]suite.Result, error) {
	results := filepath.Join(config.Artifacts, suite.ResultsFile)
	ended := t.runSuite(ctx, config, min(procs, len(config.Checks)))
	lines, err := (&suite.Reader{Path: results}).Next()
	if slices.ContainsFunc(lines, func(r suite.Result) bool { return r.State == suite.Restart }) && ctx.Err() == nil {
		logs, _ := filepath.Glob(filepath.Join(config.Artifacts, suite.ManagerLogs))
		for _, file := range append(logs, filepath.Join(config.Artifacts, trace.File)) {
			_ = os.Remove(file) // it would be taken for what the next run has written
		}
		ended = t.runSuite(ctx, config, 1)
	}
	if err == nil {
		lines, err = suite.ReadResults(results)
	}
	switch {
	case ctx.Err() != nil:
		return lines, ctx.Err()
	case err != nil || len(lines) == 0:
		return nil, errors.Join(err, ended)
	}
	return lines, nil
}

// runSuite returns how Ginkgo ended, which is an error after a check that failed, too.
func (t Tools) runSuite(ctx context.Context, config suite.Config, procs int) error {
	cmd := exec.CommandContext(ctx, t.Ginkgo, "run",
		"--procs="+strconv.Itoa(procs), fmt.Sprintf("--label-filter=/^%s(%s)$/", suite.CheckLabel, strings.Join(config.Checks, "|")),
		"--no-color", "--keep-going", "--fail-on-empty", "--fail-on-pending", "--timeout="+suiteLimit.String(), "--grace-period=10s",
		"--randomize-all", fmt.Sprintf("--seed=%d", config.Seed%1_000_000),
		t.Suite)
	output := &process.Tail{Limit: outputLimit}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, output, suiteGrace
	process.Own(cmd, syscall.SIGTERM)
	err := runWith(cmd, config)
	process.Kill(cmd)
	text := plain.Text(output.String())
	if err != nil {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		err = fmt.Errorf("run the suite: %w\n%s", err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(config.Artifacts, "suite.log"), []byte(text), 0o600))
}

// DryRun has the suite list its checks in Ginkgo's report, and run none of them. It needs no cluster; of config it takes
// what decides about the order of checks, and Artifacts, the folder to write to.
func (t Tools) DryRun(ctx context.Context, config suite.Config) (types.Report, error) {
	path := filepath.Join(config.Artifacts, "suite.json")
	cmd, output := exec.CommandContext(ctx, t.Suite, "--ginkgo.dry-run", "--ginkgo.json-report="+path), &process.Tail{Limit: outputLimit}
	cmd.Stdout, cmd.Stderr = output, output
	if err := runWith(cmd, config); err != nil {
		return types.Report{}, fmt.Errorf("list the checks: %w\n%s", err, output)
	}
	var reports []types.Report
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &reports)
	}
	if err == nil && len(reports) != 1 {
		err = fmt.Errorf("there are %d suites", len(reports))
	}
	if err != nil {
		return types.Report{}, fmt.Errorf("list the checks: %w", err)
	}
	return reports[0], nil
}

// runWith runs the suite with a configuration.
func runWith(cmd *exec.Cmd, config suite.Config) error {
	data, err := json.MarshalIndent(config, "", " ")
	if err != nil {
		return fmt.Errorf("write run configuration: %w", err)
	}
	path := filepath.Join(config.Artifacts, "run.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write run configuration: %w", err)
	}
	cmd.Dir, cmd.Env = config.Artifacts, append(os.Environ(), suite.ConfigEnv+"="+path)
	return cmd.Run()
}
