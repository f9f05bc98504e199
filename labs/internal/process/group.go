package process

import (
	"os/exec"
	"syscall"
)

// Own puts what cmd will start into a process group of its own, so that it ends whole. A signal at the terminal then
// reaches the lab alone, which passes it on in order: when the command's context ends, the whole group gets the signal.
// What does not heed it is killed after cmd.WaitDelay, which the caller sets.
func Own(cmd *exec.Cmd, signal syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, signal) }
}
