package supervisor

import (
	"errors"
	"os"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func ask(pid int) error {
	kill(pid)
	return nil
}

func freeze(int) error { return errors.ErrUnsupported }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
