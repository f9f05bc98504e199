package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// forbiddenCalls are not permitted at all.
var forbiddenCalls = []uint32{
	// They lower the priority of other processes of the user, the first process of a container among them. Whoever is below hundreds of
	// busy threads watches over nothing, and does not even end.
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
	unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET,
	unix.SYS_PTRACE,         // of two processes that trace each other's end, none ends
	unix.SYS_IO_URING_SETUP, // what is asked there is not seen here
	// Their control data are options of a socket, and may be other programs' files.
	unix.SYS_SENDMSG, unix.SYS_SENDMMSG,
	unix.SYS_IO_SETUP, // one call takes all that the machine has (fs.aio-max-nr)
	// Docker's filter forbids these without capabilities, Podman's does not. Who has a namespace of their own has all capabilities in
	// there, and queues and sockets that are not looked at.
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_PIVOT_ROOT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_SYSLOG, unix.SYS_PIDFD_GETFD, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD,
}

// programCalls are not permitted to programs either, and our tools need some of them. Locks of whole files keep others waiting, as
// those of parts do. The machine code of all filters has one limit for the machine (net.core.bpf_jit_limit). Two have disks of the
// machine written. The memory of one is cut out of the kernel's map, which stays in pieces, and what the others make outlives a job
// in a Pod.
var programCalls = []uint32{
	unix.SYS_FLOCK, unix.SYS_SECCOMP, unix.SYS_SYNC, unix.SYS_SYNCFS, unix.SYS_MEMFD_SECRET,
	unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
}

// namespaces are the flags with which clone makes namespaces. Those of clone3 are in memory, where no filter sees them: it is not
// there at all, as in Docker's filter, and Go and C libraries do without.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// unsupportedCalls answer that there is no way to do what they are asked for (EINVAL), whereupon Go copies by itself. In a pipe they
// keep more of the kernel's memory than the pipe's size, by a thousand times.
var unsupportedCalls = []uint32{unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_VMSPLICE}

// What calls with many uses may be used for: that for which Go uses them. Memory of other sockets is counted for nobody, or where
// nobody looks, and AF_VSOCK leads out of every network namespace. Other options have the kernel keep more for a socket, which is
// counted for nobody, either. Whoever reads /proc/locks, which anybody may, keeps all locks of the machine
// waiting, for as long as there are locks in it: a program makes none.
var (
	fileUses      = []uint32{unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD_CLOEXEC}
	socketOptions = []uint32{unix.SO_REUSEADDR, unix.SO_KEEPALIVE, unix.SO_LINGER}
	tcpOptions    = []uint32{unix.TCP_NODELAY, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT, unix.TCP_USER_TIMEOUT}
)

// Where a filter finds the number of the system call, its architecture, and its arguments
// (struct seccomp_data; https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html).
const (
	callNumber    = 0
	callArch      = 4
	callArguments = 16
	otherABI      = 0x40000000 // x32, on amd64
	socketType    = 0xf        // the bits that are no flags (SOCK_TYPE_MASK of the kernel)
)

var (
	allow, deny bpf.Instruction = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	unsupported bpf.Instruction = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)}
	notThere    bpf.Instruction = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	noFamily    bpf.Instruction = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)}
)

// argument loads the lower half of an argument of the call: the kernel takes an int there.
func argument(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: callArguments + 8*n, Size: 4} }

// is continues with then, which answers, for one value of what was loaded. A jump over it has at most 255 instructions.
func is(value uint32, then ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(then))}}, then...)
}

// among gives one answer for each of the values.
func among(values []uint32, answer bpf.Instruction) (all []bpf.Instruction) {
	for _, value := range values {
		all = append(all, is(value, answer)...)
	}
	return all
}

// oneOf goes on with the case of an argument's value, and denies where there is none.
func oneOf(n uint32, cases ...[]bpf.Instruction) []bpf.Instruction {
	return slices.Concat([]bpf.Instruction{argument(n)}, slices.Concat(cases...), []bpf.Instruction{deny})
}

// onlyFor allows the values of an argument, and no others.
func onlyFor(n uint32, values ...uint32) []bpf.Instruction { return oneOf(n, among(values, allow)) }

// notFor denies the values of an argument, and allows all others.
func notFor(n uint32, values ...uint32) []bpf.Instruction {
	return slices.Concat([]bpf.Instruction{argument(n)}, among(values, deny), []bpf.Instruction{allow})
}

// architectures are those that Go and seccomp know by different names. There are no sandboxes on others.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filterCalls keeps this process, and all that it starts, from the forbidden calls, from namespaces of their own, from sockets but for TCP
// and Unix ones, from locks of parts of files, and from changing the limits of others: they are not permitted (EPERM). Calls of another
// architecture are not, either.
func filterCalls() error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no filter is known for programs of %s", runtime.GOARCH)
	}
	stream := slices.Concat(
		[]bpf.Instruction{argument(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketType}},
		is(unix.SOCK_STREAM, onlyFor(2, 0, unix.IPPROTO_TCP)...), []bpf.Instruction{deny},
	)
	return install(slices.Concat(
		[]bpf.Instruction{
			bpf.LoadAbsolute{Off: callArch, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, deny,
			bpf.LoadAbsolute{Off: callNumber, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherABI, SkipTrue: 1}, deny,
		},
		among(forbiddenCalls, deny), among(unsupportedCalls, unsupported), is(unix.SYS_CLONE3, notThere),
		is(unix.SYS_CLONE, argument(0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, deny, allow),
		is(unix.SYS_SOCKET, oneOf(0, is(unix.AF_UNIX, allow), is(unix.AF_INET, stream...), is(unix.AF_INET6, stream...))...),
		is(unix.SYS_SOCKETPAIR, onlyFor(0, unix.AF_UNIX)...),
		is(unix.SYS_SETSOCKOPT, oneOf(1,
			is(unix.SOL_SOCKET, onlyFor(2, socketOptions...)...),
			is(unix.SOL_TCP, onlyFor(2, tcpOptions...)...),
			is(unix.SOL_IPV6, onlyFor(2, unix.IPV6_V6ONLY)...),
		)...),
		is(unix.SYS_FCNTL, onlyFor(1, fileUses...)...),
		is(unix.SYS_PRLIMIT64, onlyFor(0, 0)...), // 0 is whoever calls
		[]bpf.Instruction{allow},
	))
}

// filterProgram keeps this process, and all that it starts, from what our tools need and programs do not: the calls of programCalls; the
// limit that keeps the kernel from starting the machine's own program for a core dump; a core of the processor that nobody else may use; and
// IPv6. A Pod has an address of its link (fe80::) in that also where a network plugin knows and filters IPv4 alone, and its node has one,
// too. What a program needs is at 127.0.0.1.
var filterProgram = sync.OnceValue(func() error {
	return install(slices.Concat(
		[]bpf.Instruction{bpf.LoadAbsolute{Off: callNumber, Size: 4}},
		among(programCalls, deny),
		is(unix.SYS_PRCTL, notFor(0, unix.PR_SET_SECCOMP, unix.PR_SCHED_CORE)...),
		is(unix.SYS_SETRLIMIT, notFor(0, unix.RLIMIT_CORE)...), is(unix.SYS_PRLIMIT64, notFor(1, unix.RLIMIT_CORE)...),
		is(unix.SYS_SOCKET, slices.Concat([]bpf.Instruction{argument(0)}, is(unix.AF_INET6, noFamily))...),
		[]bpf.Instruction{allow},
	))
})

// install adds a filter to those that there are. The answer of the strictest counts.
func install(program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	var filter []unix.SockFilter
	for _, r := range raw {
		filter = append(filter, unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	switch {
	case errno != 0:
		return fmt.Errorf("this kernel, or container runtime, has no seccomp filters: %w", errno)
	case thread != 0:
		return errors.New("a thread has another filter")
	}
	return nil
}
