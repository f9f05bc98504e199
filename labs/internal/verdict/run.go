package verdict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// maxProcs is how many checks run side by side, each in a Ginkgo process with a manager of its own. They mostly wait
	// for the cluster, so there may be more of them than cores.
	maxProcs = 5
	// manyChecks is more than one lab has, with those of earlier labs that it asks again.
	manyChecks = 20
	// suiteLimit bounds one run of the suite, whatever happens in it.
	suiteLimit = 10 * time.Minute
	// suiteGrace is how long an interrupted suite may clean up before it is killed.
	suiteGrace = 15 * time.Second
	// outputLimit is how many bytes of what the suite prints are kept: a learner's manager can make it long.
	outputLimit = 1 << 20
)

// RunSuite runs config.Checks once, on the cluster of config.Kubeconfig, and returns their results. A failed check is not an error; a
// suite that could not report is. When ctx ends, the results so far come with the error. Where the manager cannot run several times
// on one machine, one process runs all checks: see [suite.Restart].
func (t Tools) RunSuite(ctx context.Context, config suite.Config) ([]suite.Result, error) {
	results := filepath.Join(config.Artifacts, suite.ResultsFile)
	ended := t.runGinkgo(ctx, config, procs(len(config.Checks)))
	lines, err := suite.ReadResults(results)
	if slices.ContainsFunc(lines, func(r suite.Result) bool { return r.State == suite.Restart }) && ctx.Err() == nil {
		logs, _ := filepath.Glob(filepath.Join(config.Artifacts, suite.ManagerLogs))
		for _, file := range append(logs, filepath.Join(config.Artifacts, trace.File), results) {
			_ = os.Remove(file) // else it would look like a file of the next run
		}
		ended = t.runGinkgo(ctx, config, 1)
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

// procs is how many processes run a number of checks. Those of several labs keep all cores busy: more processes would not end
// sooner, and each check would be slower, until its time runs out.
func procs(checks int) int {
	if checks > manyChecks {
		return min(maxProcs, runtime.NumCPU()+1)
	}
	return min(maxProcs, checks)
}

// runGinkgo returns how Ginkgo ended, which is an error after a check that failed, too. When ctx ends, Ginkgo has [suiteGrace] to clean
// up. Its process tree ends with it, and with this process.
func (t Tools) runGinkgo(ctx context.Context, config suite.Config, procs int) error {
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd, err := process.Supervised(alive, t.Supervisor, -1, t.Ginkgo, "run",
		"--procs="+strconv.Itoa(procs), fmt.Sprintf("--label-filter=/^%s(%s)$/", suite.CheckLabel, strings.Join(config.Checks, "|")),
		"--no-color", "--keep-going", "--fail-on-empty", "--fail-on-pending", "--timeout="+suiteLimit.String(), "--grace-period=10s",
		"--randomize-all", fmt.Sprintf("--seed=%d", config.Seed%1_000_000),
		t.Suite)
	if err != nil {
		return err
	}
	output := &process.Tail{Limit: outputLimit}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, output, suiteGrace
	if err = configure(cmd, config); err == nil {
		err = cmd.Start()
	}
	if err == nil {
		defer context.AfterFunc(ctx, func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			time.AfterFunc(suiteGrace, kill)
		})()
		err = cmd.Wait()
	}
	text := plain.Text(output.String())
	if err != nil {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		err = fmt.Errorf("run the suite: %w\n%s", err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(config.Artifacts, "suite.log"), []byte(text), 0o600))
}

// configure gives cmd, which starts the suite, a configuration that it reads from a file.
func configure(cmd *exec.Cmd, config suite.Config) error {
	path := filepath.Join(config.Artifacts, "run.json")
	cmd.Dir, cmd.Env = config.Artifacts, append(os.Environ(), suite.ConfigEnv+"="+path)
	return writeJSON(path, config)
}

// Tools are the programs that a run needs besides the learner's.
type Tools struct {
	// Suite is the compiled suite of the course, Ginkgo the program that runs it in parallel.
	Suite, Ginkgo string
	// Supervisor runs learner programs, ControllerGen is the generator that the course pins.
	Supervisor, ControllerGen string
}

// ToolsIn are those that [BuildTools] has compiled into the folder bin.
func ToolsIn(bin string) Tools {
	return Tools{
		Suite: filepath.Join(bin, "labs.test"), Ginkgo: filepath.Join(bin, "ginkgo"),
		Supervisor: filepath.Join(bin, "supervisor"), ControllerGen: filepath.Join(bin, "controller-gen"),
	}
}

// BuildTools compiles what the checkout at root needs for a run, into bin of the folder state. It takes about a second when nothing
// changed.
func BuildTools(ctx context.Context, root, state string) (Tools, error) {
	bin := filepath.Join(state, "bin")
	tools := ToolsIn(bin)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return tools, fmt.Errorf("build tools: %w", err)
	}
	scratch, remove, err := newScratch()
	if err != nil {
		return tools, err
	}
	defer remove()
	for _, args := range [][]string{
		{"build", "-o", bin + string(filepath.Separator), "github.com/onsi/ginkgo/v2/ginkgo", "sigs.k8s.io/controller-tools/cmd/controller-gen", "./labs/cmd/supervisor"},
		{"test", "-c", "-o", tools.Suite, "./labs"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		process.Own(cmd, syscall.SIGKILL)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTMPDIR="+scratch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return tools, errors.Join(ctx.Err(), fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), root, err, out))
		}
	}
	return tools, nil
}

// generate runs controller-gen on the workspace, and the probe of copies if a check needs it, while the cluster is being made. The
// checks read the results from files. The probe waits until the workspace is compiled, so that nothing is compiled twice.
func (r *run) generate(ctx context.Context, compiled <-chan struct{}) error {
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return err
	}
	made, err := generate.Generator{Binary: r.tools.ControllerGen, Workspace: r.Workspace, Scratch: r.scratch, Env: env}.Run(ctx)
	if err != nil {
		return err
	}
	if err := writeJSON(r.generated(), made); err != nil || !needs(r.wanted, course.NeedsCopies) {
		return err
	}
	<-compiled
	result, err := probe.Probe{Workspace: r.Workspace, Scratch: r.scratch, Supervisor: r.tools.Supervisor, Env: env}.Run(ctx)
	if err != nil {
		return err
	}
	return writeJSON(r.copies(), result)
}

// generated and copies are the files with the results of controller-gen and of the probe.
func (r *run) generated() string { return filepath.Join(r.scratch, "generated.json") }
func (r *run) copies() string    { return filepath.Join(r.scratch, "copies.json") }

func writeJSON(file string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write what the suite reads: %w", err)
	}
	return nil
}
