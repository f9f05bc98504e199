package supervisor

import (
	"errors"
	"syscall"
)

// ownSession keeps Ctrl-C and the end of the terminal from a supervisor: it hears
// of the end of its starter in another way.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ask tells a supervisor to end.
func ask(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// kill ends a process at once. Whether it did is seen afterwards.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
