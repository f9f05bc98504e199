//go:build linux

package guard_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const deadline = 10 * time.Second

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "guard")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/guard")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build guard:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var binary string

// guarded starts a shell script under guard and gives the lifeline's other end.
func guarded(t *testing.T, script string) (*exec.Cmd, *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "sh", "-c", script)
	cmd.ExtraFiles = []*os.File{read}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read.Close()
	t.Cleanup(func() { write.Close() })
	return cmd, write
}

// pidIn waits for a file that a script writes its child's pid to.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	eventually(t, func() bool {
		data, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	}, "pid in "+file)
	return pid
}

func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); !ok(); {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", deadline, what)
		case <-tick.C:
		}
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestProgramsExitCodeIsPassedOn(t *testing.T) {
	cmd, _ := guarded(t, "exit 7")
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit code %d, want 7", got)
	}
}

func TestEscapedGrandchildIsKilledWhenTheProgramEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, _ := guarded(t, fmt.Sprintf("setsid sh -c 'echo $$ > %s; exec sleep 1000' & while [ ! -s %s ]; do :; done; exit 0", file, file))
	_ = cmd.Wait()
	if pid := pidIn(t, file); alive(pid) {
		t.Errorf("process %d outlives its guard", pid)
	}
}

func TestTreeIsKilledWhenTheStarterIsGone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, lifeline := guarded(t, fmt.Sprintf("trap '' TERM; echo $$ > %s; while :; do sleep 1000; done", file))
	pid := pidIn(t, file)
	lifeline.Close()
	_ = cmd.Wait()
	if alive(pid) {
		t.Errorf("process %d outlives its starter", pid)
	}
}

func TestSignalReachesTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, _ := guarded(t, fmt.Sprintf("trap 'exit 5' TERM; echo $$ > %s; while :; do sleep 0.01; done", file))
	pidIn(t, file)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit code %d, want the program's own 5", got)
	}
}
