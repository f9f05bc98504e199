//go:build !windows

package sandbox

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a signal to this process's group from the guard: it has to outlive this process by the
// moment that it takes to end the learner's processes.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
