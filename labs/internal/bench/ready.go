package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// readyPackage has the benchmarks of control planes without containers. They live in a test, because envtest is
	// no part of the lab.
	readyPackage = "clusters/embeddedtest"
	// readyLimit bounds one measurement, which takes seconds.
	readyLimit = 5 * time.Minute
)

// benchmarks are the names of the benchmarks of each series.
var benchmarks = map[string]string{ReadyEmbedded: "BenchmarkEmbedded", ReadyEnvtest: "BenchmarkEnvtest"}

// Ready runs the benchmarks of control planes without containers, one at a time.
type Ready struct {
	dir, program string // the package, and its compiled test
	guard        string
	env          []string
}

// BuildReady compiles the benchmarks of the checkout at root into state. guard is the compiled labs/cmd/guard: what
// envtest starts has process groups of its own and would outlive an interrupt.
func BuildReady(ctx context.Context, root, state, cache, guard string) (*Ready, error) {
	r := &Ready{
		dir: filepath.Join(root, filepath.FromSlash(readyPackage)), program: filepath.Join(state, "bin", "embeddedtest.test"),
		guard: guard, env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "LAB_CACHE="+cache),
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", r.program, ".")
	cmd.Dir, cmd.Env = r.dir, r.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("go test -c in %s: %w\n%s", r.dir, err, out))
	}
	return r, nil
}

// measure runs the benchmark of one series once.
func (r *Ready) measure(ctx context.Context, series string) (samples []Sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	name := benchmarks[series]
	tmp, err := os.MkdirTemp("", "operator-lab-ready-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(tmp) // what a benchmark leaves that was killed
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a lifeline: %w", err)
	}
	defer write.Close()
	cmd := exec.CommandContext(ctx, r.guard, "-memory=0", "-processes=0", r.program,
		"-test.run=^$", "-test.bench=^"+name+"$", "-test.benchtime=1x", "-test.count=1")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = r.dir, append(r.env, "TMPDIR="+tmp), []*os.File{read}
	cmd.Cancel = write.Close // the guard then ends everything and itself
	cmd.WaitDelay = readyGrace
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Start()
	read.Close()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w\n%s", name, err, out.String())
	}
	s, err := parseBenchmark(out.String(), name)
	s.Series = series
	return []Sample{s}, err
}

// readyGrace is how long the guard may take to end a control plane.
const readyGrace = 10 * time.Second

// parseBenchmark reads the line that `go test -bench` prints about the named benchmark: its name, a count, and then
// pairs of number and unit.
func parseBenchmark(output, name string) (s Sample, err error) {
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != name && !strings.HasPrefix(fields[0], name+"-") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return s, fmt.Errorf("read the result of %s: %w", name, err)
			}
			switch fields[i+1] {
			case "s-wall":
				s.Seconds = value
			case "cpu-s":
				s.CoreSeconds = value
			}
		}
	}
	if s.Seconds == 0 || s.CoreSeconds == 0 {
		return s, fmt.Errorf("read the result of %s: no s-wall and cpu-s in\n%s", name, output)
	}
	return s, nil
}
