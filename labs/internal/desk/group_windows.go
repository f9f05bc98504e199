package desk

import "os/exec"

// OwnGroup does nothing here: an interrupt reaches the program alone.
func OwnGroup(*exec.Cmd) {}
