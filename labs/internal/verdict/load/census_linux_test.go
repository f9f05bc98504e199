package load

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

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
