//go:build !linux

package supervisor

import "syscall"

// childAttributes has no way to end a program together with its supervisor here.
// What a killed supervisor leaves is ended by [End].
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
