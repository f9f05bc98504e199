//go:build linux

package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/guard"
)

// scripted gives a Ready whose compiled benchmarks are a shell script, under the real guard.
func scripted(t *testing.T, script string) (r *Ready, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	r = &Ready{dir: dir, program: filepath.Join(dir, "program"), guard: filepath.Join(dir, "guard"), env: os.Environ()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", r.guard, "../../cmd/guard").CombinedOutput(); err != nil {
		t.Fatalf("build guard: %v\n%s", err, out)
	}
	if err := os.WriteFile(r.program, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return r, dir
}

func TestOneBenchmarkIsRunOnce(t *testing.T) {
	r, dir := scripted(t, `echo "$@" > args; echo left > "$TMPDIR/left"; echo "BenchmarkEnvtest 1 3 ns/op 2.2 cpu-s 3.7 s-wall"`)
	samples, err := r.measure(t.Context(), ReadyEnvtest)
	if err != nil || len(samples) != 1 || samples[0].Series != ReadyEnvtest || samples[0].Seconds != 3.7 || samples[0].CoreSeconds != 2.2 {
		t.Errorf("measure() = %+v, %v, want what the benchmark printed", samples, err)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if want := "-test.run=^$ -test.bench=^BenchmarkEnvtest$ -test.benchtime=1x -test.count=1"; err != nil || strings.TrimSpace(string(args)) != want {
		t.Errorf("arguments %q, %v, want %q", args, err, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestBenchmarkThatFailsSaysWhy(t *testing.T) {
	r, _ := scripted(t, `echo "etcd: no space left"; exit 1`)
	if samples, err := r.measure(t.Context(), ReadyEmbedded); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("measure() = %+v, %v, want what the benchmark said", samples, err)
	}
}

// envtest starts its programs in process groups of their own.
func TestAnInterruptEndsWhatABenchmarkStarted(t *testing.T) {
	r, dir := scripted(t, `setsid sh -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000' & wait`)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	pid := 0
	go func() {
		defer interrupt()
		for tick := time.NewTicker(time.Millisecond); pid == 0 && ctx.Err() == nil; <-tick.C {
			data, _ := os.ReadFile(filepath.Join(dir, "pid"))
			pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		}
	}()
	_, err := r.measure(ctx, ReadyEnvtest)
	// The guard ended everything and itself: nobody had to kill it after its time of grace.
	if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != guard.CannotRun {
		t.Errorf("measure() = %v, want that the guard ended with %d", err, guard.CannotRun)
	}
	<-ctx.Done()
	if err := syscall.Kill(pid, 0); pid == 0 || !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d outlives the interrupt: %v", pid, err)
	}
}

func TestBenchmarkIsReadFromWhatGoTestPrints(t *testing.T) {
	const output = `goos: linux
pkg: github.com/example/operator-lab/clusters/embeddedtest
BenchmarkEmbedded
    bench_test.go:84: 1.62 s, 1.49 core-s
BenchmarkEmbedded-2   	       1	1623456789 ns/op	         1.490 cpu-s	         1.623 s-wall
PASS
`
	s, err := parseBenchmark(output, "BenchmarkEmbedded")
	if err != nil || s.Seconds != 1.623 || s.CoreSeconds != 1.49 {
		t.Errorf("parseBenchmark() = %+v, %v, want 1.623 s and 1.49 core-seconds", s, err)
	}
	for name, output := range map[string]string{
		"another one": output, "nothing": "PASS\n", "no metrics": "BenchmarkEnvtest 1 16 ns/op\n", "nonsense": "BenchmarkEnvtest 1 x s-wall\n",
	} {
		if s, err := parseBenchmark(output, "BenchmarkEnvtest"); err == nil {
			t.Errorf("%s: parseBenchmark() = %+v, want an error", name, s)
		}
	}
}
