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
	"unsafe"

	"github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

const deadline = time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sharesMemory {
		shareMemory()
	}
	if len(os.Args) == 2 && os.Args[1] == readsNothing {
		readNothing()
	}
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

// sharesMemory is the argument of this test binary when it plays a program that takes memory which others could share with it.
const sharesMemory = "share-memory"

func shareMemory() {
	memory, err := syscall.Mmap(-1, 0, 256<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	time.Sleep(deadline)
}

// supervised starts a shell script under the supervisor, with the supervisor's own flags, and gives the parent pipe's other end.
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

func TestProgramsExitCodeIsPassedOn(t *testing.T) {
	cmd, _ := supervised(t, "exit 7")
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit code %d, want 7", got)
	}
}

// Whoever starts the supervisor takes that code for a machine that could not start the program.
func TestAProgramCannotSayThatItWasNotStarted(t *testing.T) {
	cmd, _ := supervised(t, fmt.Sprint("exit ", supervisor.CannotRun))
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
}

func TestEscapedGrandchildIsKilledWhenTheProgramEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd, _ := supervised(t, fmt.Sprintf("setsid sh -c 'echo $$ > %s; exec sleep 1000' & while [ ! -s %s ]; do :; done; exit 0", file, file))
	_ = cmd.Wait()
	if pid := pidIn(t, file); alive(pid) {
		t.Errorf("process %d outlives its supervisor", pid)
	}
}

func TestTreeIsKilledWhenTheStarterIsGone(t *testing.T) {
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

func TestATreeThatTakesTooMuchIsKilled(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		flags  []string
		code   int
	}{
		// tail keeps what it read until a line ends.
		"memory":                    {"head -c 3000000000 /dev/zero | tail -n 1 | wc -c", []string{"-memory=64"}, supervisor.TooMuchMemory},
		"memory of a few together":  {"for i in 1 2 3 4; do (head -c 20000000 /dev/zero; sleep 1000) | tail -n 1 & done; wait", []string{"-memory=64"}, supervisor.TooMuchMemory},
		"memory that can be shared": {os.Args[0] + " " + sharesMemory, []string{"-memory=128"}, supervisor.TooMuchMemory},
		"memory of page tables":     {os.Args[0] + " " + readsNothing, []string{"-memory=64"}, supervisor.TooMuchMemory},
		"processes":                 {"for i in $(seq 30); do sleep 1000 & done; wait", []string{"-processes=20"}, supervisor.TooManyProcesses},
		"processes that escaped":    {"(setsid sh -c 'for i in $(seq 30); do sleep 1000 & done; wait' &); sleep 1000", []string{"-processes=20"}, supervisor.TooManyProcesses},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, _ := supervised(t, tc.script, tc.flags...)
			_ = cmd.Wait() // the first would end by itself soon, with another code; the others would outlast go test
			if got := cmd.ProcessState.ExitCode(); got != tc.code || supervisor.Exceeded(got) == "" {
				t.Errorf("exit code %d (%q), want %d", got, supervisor.Exceeded(got), tc.code)
			}
		})
	}
}

func TestADecentTreeIsLeftAlone(t *testing.T) {
	cmd, _ := supervised(t, "for i in $(seq 10); do sleep 0.6 & done; head -c 20000000 /dev/zero | tail -n 1 >/dev/null; wait; exit 3", "-memory=64", "-processes=20")
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit code %d, want the program's own 3", got)
	}
}

func TestAFileHasALimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	cmd, _ := supervised(t, "head -c 400000000 /dev/zero > "+file+"; kill -l $?")
	_ = cmd.Wait()
	info, err := os.Stat(file)
	if err != nil || uint64(info.Size()) != supervisor.DefaultLimits.File {
		t.Errorf("the file is %v, %v, want one of %d bytes", info, err, supervisor.DefaultLimits.File)
	}
}

// A program that does nothing but fork is faster than whoever looks at it now and then, so the kernel has to
// stop it. This is not tried out: root is not stopped.
func TestTheKernelLimitsTheTasksOfTheProgramsUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits")
	cmd, _ := supervised(t, "grep 'Max processes' /proc/self/limits > "+file)
	_ = cmd.Wait()
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
	if limit, err := strconv.Atoi(fields[2]); err != nil || limit > 32000 {
		t.Errorf("the kernel's limit is %q, want one that a user's tasks come near", out)
	}
}

// readsNothing is the argument of this test binary when it plays a program that has the kernel make page tables: it reads a byte
// here and there of memory in which there is nothing.
const readsNothing = "read-nothing"

func readNothing() {
	const size, step = 256 << 30, 2 << 20 // 512 MiB of tables, of 4 KiB each
	memory, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		os.Exit(1)
	}
	_ = unix.Madvise(unsafe.Slice((*byte)(memory), size), unix.MADV_NOHUGEPAGE)
	sum := byte(0)
	for at := 0; at < size; at += step {
		sum += *(*byte)(unsafe.Add(memory, at))
	}
	time.Sleep(time.Hour)
	fmt.Print(sum)
}
