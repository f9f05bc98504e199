package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killPeriod is the time between two looks at a tree that was just killed: the kernel announces no death of a grandchild.
const killPeriod = 5 * time.Millisecond

// adopt makes this process the parent of its orphaned descendants, so that none can escape by a double fork, and limits what they
// take.
func adopt() error {
	limit := unix.Rlimit{Cur: Memory, Max: Memory}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// killTree kills the children of this process, whose own then become its children, until none is left. A program that does nothing but fork is
// faster than a walk through the process table, so whatever runs as a user of its own is ended at once first: a signal to all is one
// to those that its sender may signal, and the kernel lets none of them fork meanwhile.
func killTree(_, uid int) {
	if uid >= firstUser && syscall.Setuid(uid) == nil {
		_ = syscall.Kill(-1, syscall.SIGKILL)
	}
	for {
		pids := children()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for reaped := 1; reaped > 0; {
			reaped, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(killPeriod)
	}
}

// children reads the process table. Processes that vanish while it is read do not matter.
func children() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && parentOf(pid) == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads the fourth field of /proc/PID/stat, which follows the command in parentheses; 0 when the process is gone.
func parentOf(pid int) int {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
