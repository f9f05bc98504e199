package supervisor

import (
	"bytes"
	"errors"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// withhold keeps from the program what else it would inherit: files that this process has got open itself, and the keys of its
// session. Both are of no use to it; an old kernel, or a container, may know no such call. Nor does it become somebody else by
// a set-uid program. The thread is locked to the caller.
func withhold() {
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	_, _, _ = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
}

// settle is how long to wait between two looks at a tree that was just killed.
const settle = 5 * time.Millisecond

// adopt makes this process the parent of its orphaned descendants, so that none can escape by a
// double fork. The first process of a container is that anyway, and gVisor may not know the call.
func adopt() error {
	if os.Getpid() == 1 {
		return nil
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// attributes begin a session without a terminal: whoever has the one of this process opens it as /dev/tty, whoever they are, and
// can type into it.
func attributes(uid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if uid >= 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return attr
}

// killTree kills every descendant of this process, again and again until none is left. A program that does nothing but fork is
// faster than a walk through the process table, so whatever runs as a user of its own is ended first.
func killTree(_, uid int) {
	if os.Getpid() == 1 {
		EndOthers()
		return
	}
	EndUser(uid)
	for {
		pids := descendants(os.Getpid())
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for reaped := 1; reaped > 0; {
			reaped, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(settle) // the kernel announces no death of a grandchild
	}
}

// killUser kills all processes of a user at once: the kernel lets none of them fork meanwhile. A signal to all is one to those
// that its sender may signal, so a thread becomes that user for it. It does so as its effective user alone: what may signal a
// thread is decided by its real and its saved one, and those are the id after, which nobody else has.
func killUser(uid int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: who it is ends with it
		if unix.Gettid() == os.Getpid() {
			// The first thread never ends, and who it is decides about signals to the whole process: it only waits here.
			defer runtime.UnlockOSThread()
			killUser(uid)
			return
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid+1), uintptr(uid), uintptr(uid+1)); errno == 0 {
			_ = syscall.Kill(-1, syscall.SIGKILL)
		}
	}()
	<-done
}

// EndOthers kills every other process of a container whose first process this is, and waits until they are gone. Unlike a walk
// through the process table, the kernel is faster than a program that does nothing but fork.
func EndOthers() {
	_ = syscall.Kill(-1, syscall.SIGKILL) // no other is no error
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// spareTasks is how many processes and threads a program's user may have beside those that it had when
// the program was started. It is a second line behind the limit on processes, which is only looked at now
// and then: a program that does nothing but fork is faster.
const spareTasks = 500

// set gives this process the limits that the kernel keeps, and its children inherit them. In a container the user is that of
// other containers of this machine, too, whose tasks nobody sees in here and the kernel counts; there the engine has a limit.
func (l Limits) set(uid int) error {
	if l.File > 0 {
		if err := lower(unix.RLIMIT_FSIZE, l.File); err != nil {
			return err
		}
	}
	if l.Processes == 0 || os.Getpid() == 1 {
		return nil
	}
	if uid < 0 {
		uid = os.Getuid()
	}
	spare := spareTasks
	if drawn(uid) {
		spare /= 2 // nobody else needs one
	}
	return lower(unix.RLIMIT_NPROC, uint64(tasksOf(uid)+spare))
}

// lower lowers a limit, and leaves one alone that is lower already.
func lower(resource int, limit uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	limit = min(limit, now.Cur)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: min(limit, now.Max)})
}

// tasksOf counts the processes and threads of a user.
func tasksOf(uid int) int {
	n := 0
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != uid {
			continue
		}
		tasks, _ := os.ReadDir("/proc/" + e.Name() + "/task")
		n += len(tasks)
	}
	return n
}

// ofMemory are the lines of /proc/PID/status about memory that is in no file, on the disk for swapping, and for page tables: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html.
// Each process that shares some of it counts with all of that.
var ofMemory = regexp.MustCompile(`(?m)^(?:RssAnon|RssShmem|VmPTE|VmSwap|HugetlbPages):\s+(\d+) kB$`)

// ofThreads is the line about threads in the same file.
var ofThreads = regexp.MustCompile(`(?m)^Threads:\s+(\d+)`)

// taken is what all descendants of this process take: memory in bytes that is in no file, how many they are, and their threads.
func taken() (memory uint64, processes, threads int) {
	for _, pid := range family(os.Getpid()) {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		for _, line := range ofMemory.FindAllSubmatch(data, -1) {
			kilobytes, _ := strconv.ParseUint(string(line[1]), 10, 64)
			memory += kilobytes << 10
		}
		processes++
		if found := ofThreads.FindSubmatch(data); found != nil {
			n, _ := strconv.Atoi(string(found[1]))
			threads += n
		}
	}
	return memory, processes, threads
}

// family are the descendants of a process as the kernel lists them, which costs a hundredth of reading the whole process
// table, several times a second. It may miss some while others end (https://man7.org/linux/man-pages/man5/proc_pid_task.5.html),
// and a kernel may be built without it; so it is no way to find all that are to be killed.
func family(root int) []int {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err != nil {
		return descendants(root)
	}
	var all []int
	for queue := children(root); len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, children(queue[0])...)
	}
	return all
}

// children are the processes that any thread of pid has started.
func children(pid int) []int {
	var all []int
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(dir)
	for _, thread := range threads {
		data, _ := os.ReadFile(dir + thread.Name() + "/children")
		for _, field := range bytes.Fields(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// descendants reads the process table. Processes that vanish while it is read do not matter.
func descendants(root int) []int {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var all []int
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return all
}

// parentOf reads the fourth field of /proc/PID/stat, which follows the command in parentheses.
func parentOf(pid int) (int, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0, false
	}
	fields := bytes.Fields(data[end+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
