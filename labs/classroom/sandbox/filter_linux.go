package sandbox

import (
	"errors"
	"fmt"
	"runtime"
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
}

// families are those of the sockets that there may be. What others keep is counted for nobody (AF_NETLINK), or leads out of every
// network namespace (AF_VSOCK).
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

// Where a filter finds the number of the system call, its architecture, and the lower half of its first argument
// (struct seccomp_data; https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html).
const (
	callNumber   = 0
	callArch     = 4
	callArgument = 16
	otherABI     = 0x40000000 // x32, on amd64
)

// architectures are those that Go and seccomp know by different names. There are no sandboxes on others.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filterCalls keeps this process, and all that it starts, from the forbidden calls, from sockets of other families, and from changing
// the limits of others: they are not permitted (EPERM). Calls of another architecture are not, either.
func filterCalls() error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no filter is known for programs of %s", runtime.GOARCH)
	}
	deny, allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, deny,
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: otherABI, SkipTrue: 1}, deny,
	}
	for _, call := range forbiddenCalls {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, deny)
	}
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: uint8(2*len(families) + 2)},
		bpf.LoadAbsolute{Off: callArgument, Size: 4},
	)
	for _, family := range families {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: 1}, allow)
	}
	program = append(program, deny,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_PRLIMIT64, SkipTrue: 1}, allow,
		bpf.LoadAbsolute{Off: callArgument, Size: 4}, // 0 is whoever calls
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, deny, allow,
	)
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
