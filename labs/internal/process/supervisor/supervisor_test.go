//go:build linux

package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

const deadline = time.Minute

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "supervisor")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "supervisor")
	build := exec.Command("go", "build", "-o", binary, "../../../cmd/supervisor")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build supervisor:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var binary string

// supervised starts a shell script under the supervisor, with its flags, and gives the parent pipe's other end.
func supervised(t *testing.T, script string, flags ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, append(flags, "sh", "-c", script)...)
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
	gomega.NewWithT(t).Eventually(func() bool {
		data, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "pid in "+file)
	return pid
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestExitCodeIsPassedOn(t *testing.T) {
	for program, want := range map[int]int{7: 7, supervisor.CannotRun: 1} { // CannotRun is for a machine that could not start the program
		cmd, _ := supervised(t, fmt.Sprint("exit ", program))
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("exit code %d of a program that exits with %d", got, program)
		}
	}
}

func TestEscapedGrandchildIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, _ := supervised(t, fmt.Sprintf("setsid sh -c 'echo $$ > %s; exec sleep 1000' & while [ ! -s %s ]; do :; done; exit 0", file, file))
	_ = cmd.Wait()
	if pid := pidIn(t, file); alive(pid) {
		t.Errorf("process %d outlives its supervisor", pid)
	}
}

func TestTreeIsKilledWithTheStarter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, parentPipe := supervised(t, fmt.Sprintf("trap '' TERM; echo $$ > %s; while :; do sleep 1000; done", file))
	pid := pidIn(t, file)
	parentPipe.Close()
	_ = cmd.Wait()
	if alive(pid) {
		t.Errorf("process %d outlives its starter", pid)
	}
}

func TestSignalReachesTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, _ := supervised(t, fmt.Sprintf("trap 'exit 5' TERM; echo $$ > %s; while :; do sleep 0.01; done", file))
	pidIn(t, file)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit code %d, want the program's own 5", got)
	}
}

// tail keeps what it read until a line ends.
func TestMemoryHasALimit(t *testing.T) {
	cmd, _ := supervised(t, `[ "$(head -c 3000000000 /dev/zero | tail -n 1 | wc -c)" = 3000000000 ]`)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() == 0 {
		t.Error("a program has 3 GB")
	}
	cmd, _ = supervised(t, `[ "$(head -c 20000000 /dev/zero | tail -n 1 | wc -c)" = 20000000 ]`)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
		t.Error("a decent program has not 20 MB")
	}
}
