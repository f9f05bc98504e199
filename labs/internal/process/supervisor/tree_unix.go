//go:build !linux && !windows

package supervisor

import "syscall"

// adopt has no counterpart here: a process that leaves its group escapes.
func adopt() error { return nil }

// withhold has no counterpart here.
func withhold() {}

// attributes begin a session without a terminal: whoever has the one of this process opens it as /dev/tty, whoever they are, and
// can type into it.
func attributes(uid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if uid >= 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return attr
}

// killTree kills the program's process group.
func killTree(pid, _ int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func (Limits) set(int) error { return nil }

// taken is not known here.
func taken() (memory uint64, processes, threads int) { return 0, 0, 0 }

func killUser(int) {}
