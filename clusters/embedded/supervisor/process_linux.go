package supervisor

import "syscall"

// childAttributes has the kernel end a program when its supervisor is killed.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
