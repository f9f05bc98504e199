package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/operator-lab/labs/internal/process"
)

// leaderless makes this program one that computes, and whose first thread ends, when somebody closes its standard input.
const leaderless = "LEADERLESS"

func TestMain(m *testing.M) {
	if os.Getenv(leaderless) == "" {
		os.Exit(m.Run())
	}
	runtime.GOMAXPROCS(2) // the thread that ends keeps one
	runtime.LockOSThread()
	_, _ = io.Copy(io.Discard, os.Stdin)
	begun := make(chan struct{})
	go func() {
		close(begun)
		for { //nolint:staticcheck // it is to compute
		}
	}()
	<-begun
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

// Graded code may end the first thread of its processes, or these as a whole, at any moment. It is no burden of others for that.
func TestGradedCodeWithoutAFirstThreadIsNoBurden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: control groups cannot be made")
	}
	base := "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(base, "cgroup.controllers")); err != nil {
		base = filepath.Join(base, "pids") // version 1
	}
	group := filepath.Join(base, fmt.Sprintf("lab-load-%d", os.Getpid()), process.LauncherCgroup)
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.Remove(group), os.Remove(filepath.Dir(group))) })
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	for _, isGraded := range []bool{false, true} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), leaderless+"=1")
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		pid := cmd.Process.Pid
		if isGraded {
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
		err = wait.PollUntilContextTimeout(t.Context(), interval, 30*time.Second, true, func(context.Context) (bool, error) {
			first, err := fs.Proc(pid)
			if err != nil {
				return false, err
			}
			stat, err := first.Stat()
			return stat.State == "Z" && stat.NumThreads > 1, err
		})
		if err != nil {
			t.Fatalf("the first thread goes on: %v", err)
		}
		if n := threads(fs, pid); (n == 0) != isGraded {
			t.Errorf("graded: %v, and %d threads count", isGraded, n)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if n := threads(fs, pid); n != 0 {
			t.Errorf("%d threads of a process that has ended", n)
		}
	}
}

// Programs that nobody started from here are others' load. What this process starts is not, and neither is what runs beside
// a kubelet, below one first process.
func TestWhoIsAnother(t *testing.T) {
	const loops = 6
	loop := "while :; do :; done"
	detached := fmt.Sprintf("for i in $(seq %d); do timeout 60 sh -c '%s' >/dev/null 2>&1 & echo $!; done", loops, loop)
	out, err := exec.Command("sh", "-c", detached).Output() // their parent ends, and this process is not their ancestor any more
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for pid := range strings.FieldsSeq(string(out)) {
			_ = exec.Command("kill", pid).Run()
		}
	})
	own := exec.CommandContext(t.Context(), "sh", "-c", loop)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Process.Signal(syscall.SIGKILL); _ = own.Wait() })

	fs, err := procfs.NewDefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	all := processes(fs)
	ours := lab(os.Getpid(), all)
	if !ours[os.Getpid()] || !ours[own.Process.Pid] {
		t.Error("this process and what it started are taken for others")
	}
	n := 0
	err = wait.PollUntilContextTimeout(t.Context(), interval, 30*time.Second, true, func(context.Context) (bool, error) {
		n = new(census).others()
		return n >= loops, nil // a loop may not have begun yet
	})
	if err != nil {
		t.Errorf("%d threads of others, want at least the %d loops", n, loops)
	}
	other := firstProcess(t, all, ours)
	node := maps.Clone(all)
	node[own.Process.Pid] = procfs.ProcStat{Comm: "kubelet", PPID: other}
	if !lab(os.Getpid(), node)[other] {
		t.Error("what runs beside a kubelet is taken for others")
	}
}

func TestGradedCodeIsKnownByItsCgroup(t *testing.T) {
	for path, want := range map[string]bool{
		"/operator-lab.slice/4f2a": true, "/operator-lab/4f2a": true, "/../../operator-lab.slice/docker-4f2a.scope": true,
		"/docker/4f2a": false, "/my-operator-lab.slice/4f2a": false, "/": false,
	} {
		if launched(procfs.Cgroup{Path: path}) != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
}

// firstProcess is one that is neither ours nor the machine's first, to be taken for that of a container.
func firstProcess(t *testing.T, all map[int]procfs.ProcStat, ours map[int]bool) int {
	t.Helper()
	for pid, p := range all {
		if pid > kernel && p.PPID != kernel && !ours[pid] {
			return pid
		}
	}
	t.Fatal("there is no other process")
	return 0
}
