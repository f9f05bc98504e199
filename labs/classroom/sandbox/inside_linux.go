package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// conceal keeps other processes of the same user from tracing this one, and from its open files.
func conceal() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// lastSignal is the highest number of a signal (_NSIG of the kernel).
const lastSignal = 64

// kernelSigaction is the struct sigaction of the kernel, of which all zeros are the default action (SIG_DFL).
type kernelSigaction struct{ handler, flags, restorer, mask uint64 }

// ignoreSignals gives the first process of a container the default action for each signal. The kernel then drops those that come from
// within the container ("The init process of a namespace", pid_namespaces(7)). Go has a handler for each, and whoever sends
// signals of which the kernel keeps a queue keeps this process in it. Nothing here may ask for signals after this
// (signal.Notify): Go would install its handler again.
func ignoreSignals() error {
	if os.Getpid() != 1 {
		return nil // others would end
	}
	var byDefault kernelSigaction
	for sig := 1; sig <= lastSignal; sig++ {
		if sig == int(unix.SIGKILL) || sig == int(unix.SIGSTOP) {
			continue
		}
		_, _, errno := unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, unsafe.Sizeof(byDefault.mask), 0, 0)
		if errno != 0 {
			return fmt.Errorf("signal %d: %w", sig, errno)
		}
	}
	return nil
}

// spareThreads is how many threads this process may need at once: for a few files that it reads, and a few connections.
const spareThreads = 24

// reserveThreads has the runtime start threads that it keeps. Go cannot go on when it needs one and the kernel refuses,
// which it does where a program has taken all that a container may have.
func reserveThreads() error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	var begun, ended sync.WaitGroup
	begun.Add(spareThreads)
	for range spareThreads {
		ended.Go(func() {
			runtime.LockOSThread() // until it is unlocked, nothing else runs on this thread
			defer runtime.UnlockOSThread()
			begun.Done()
			_, _ = unix.Read(pipe[0], make([]byte, 1))
		})
	}
	begun.Wait()
	err := unix.Close(pipe[1])
	ended.Wait()
	return errors.Join(err, unix.Close(pipe[0]))
}

// countEvents reads those of this container. The kernel counts the processes that it has killed for want of memory whoever was
// short of it, this container or one of the groups above, and apart from that how often this one was at its limit
// (https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files).
func countEvents() events {
	return events{
		refused: refusedTasks(),
		killed:  counted("oom_kill ", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"),
		full:    max(counted("oom ", "/sys/fs/cgroup/memory.events"), counted("", "/sys/fs/cgroup/memory/memory.failcnt")),
	}
}

// refusedTasks is how often the kernel has refused this container a process or thread.
func refusedTasks() int {
	return counted("max ", "/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events")
}

// memoryIsLimited says whether this container has a limit. Where it has none, its group may be that of all groups, and what is counted
// there is others'. Version 1 of control groups has a number of nearly 1<<63 for no limit, and version 2 a word. One that cannot be read
// ([counted]) is a limit.
func memoryIsLimited() bool {
	limit := counted("", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
	return limit == math.MaxInt || limit > 0 && limit < 1<<60
}

// kernelMemory is what the kernel keeps for this container, in bytes; 0 where nobody counts.
func kernelMemory() int {
	if kernel := counted("kernel ", "/sys/fs/cgroup/memory.stat"); kernel > 0 { // since Linux 5.18
		return kernel
	}
	return max(counted("slab ", "/sys/fs/cgroup/memory.stat"), counted("", "/sys/fs/cgroup/memory/memory.kmem.usage_in_bytes"))
}

// socketLimit is how many sockets there may be in the network of a container, or of all containers of a Pod: each may have full queues
// ([queueSizes]), also one that was reset, which is in no list. With a manager there are 22; in a Pod with five, some 70.
const socketLimit = 256

// tooManySockets says whether there are more. Where that cannot be read for want of what the program has taken, there are.
func tooManySockets() bool {
	if os.Getpid() != 1 {
		return false // others' are counted there
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return isWant(err)
	}
	stat, err := proc.NetSockstat()
	if err != nil {
		return isWant(err)
	}
	return ptr.Deref(stat.Used, 0) > socketLimit
}

// counted reads a counter of this container's control group. Where it is depends on their version, and 0 is where there
// is none: outside of containers the counters are others'. Where there is one that cannot be read, the program has taken what that
// needs, and nothing is more.
func counted(name string, files ...string) int {
	if os.Getpid() != 1 {
		return 0
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return math.MaxInt
		}
		for line := range strings.Lines(string(data)) {
			if text, ok := strings.CutPrefix(line, name); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(text))
				return n
			}
		}
	}
	return 0
}

// endOthers ends all other processes of this container, of which this is the first.
func endOthers() { supervisor.EndOthers() }

// fileLimit is the size of one file of a job, in bytes: that of the largest program. A container of a Pod has a file that is on its
// node, for a last message, to which no other limit applies.
const fileLimit = 256 << 20

// limitFiles limits the files that this process and all that it starts may write.
func limitFiles() error {
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: fileLimit, Max: fileLimit})
}

// refuseCoreDumps keeps the kernel from making any of this process and all that it starts. With a limit of 0 it would still start the
// program that takes them on this machine, if there is one, and with 1 it does not (do_coredump,
// https://github.com/torvalds/linux/blob/master/fs/coredump.c).
func refuseCoreDumps() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, 1) // nobody may raise it
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_CORE, &limit)
}
