package embedded

import "syscall"

// endsWithParent has the kernel end a program when its supervisor is killed.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
