//go:build !linux

package embedded

import "syscall"

// endsWithParent has no way to end a program together with its supervisor here.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
