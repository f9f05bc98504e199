package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/processgroup"
)

// GoTest asks the checks of lab n as somebody would who has no lab command: `go test` compiles the suite and runs it on
// j.Cluster in one process, one check after the other. manager is the learner's compiled program, in a folder that an
// unprivileged user can pass through. It is there to be compared with [Judge.Check]: it keeps no result, and its error
// is also that of a check that did not pass. Artifacts stay only then.
func (j *Judge) GoTest(ctx context.Context, n int, manager string) error {
	r, err := j.newRun()
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	if r.wanted, err = r.suiteLabs([]int{n}); err != nil {
		return err
	}
	r.cluster, r.tools, r.manager = r.Cluster, r.Tools, manager
	report, err := r.goTest(ctx, r.config([]int{n}))
	if err != nil {
		return err
	}
	c := Classify(report, r.wanted, r.cluster.RealPods)
	if c.Defect != "" {
		return fmt.Errorf("run go test ./labs: %s", c.Defect)
	}
	for _, check := range c.Checks {
		if check.State != Passed && check.State != NotChecked {
			return fmt.Errorf("run go test ./labs: %s did not pass: expected %s; saw %s; artifacts in %s", check.ID, check.Expected, check.Seen, r.artifacts)
		}
	}
	return os.RemoveAll(r.artifacts)
}

// goTest is [Tools.RunSuite] without the compiled suite and without Ginkgo's command.
func (r *run) goTest(ctx context.Context, config harness.Config) (types.Report, error) {
	path, err := writeConfig(config)
	if err != nil {
		return types.Report{}, err
	}
	reports := filepath.Join(config.Artifacts, "suite.json")
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout="+suiteLimit.String(), "./labs", "-args",
		"-ginkgo.label-filter="+labelFilter(config), "-ginkgo.no-color", "-ginkgo.fail-on-empty",
		"-ginkgo.randomize-all", fmt.Sprintf("-ginkgo.seed=%d", config.Seed%1_000_000), "-ginkgo.json-report="+reports)
	cmd.Dir = r.Course.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", harness.ConfigEnv+"="+path)
	processgroup.Own(cmd, syscall.SIGTERM)
	cmd.WaitDelay = suiteGrace
	output, runErr := cmd.CombinedOutput()
	processgroup.Kill(cmd)
	if ctx.Err() != nil {
		return types.Report{}, ctx.Err()
	}
	report, err := readReport(reports)
	if err != nil {
		return report, errors.Join(fmt.Errorf("run go test ./labs: %w\n%s", err, lastLines(string(output))), runErr)
	}
	return report, nil
}
