//go:build !windows

package desk

import (
	"os/exec"
	"syscall"
)

// OwnGroup puts what is typed and all that it starts into a group of their own, which an interrupt reaches as a whole.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
