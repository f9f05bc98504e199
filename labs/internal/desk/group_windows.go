package desk

import "os/exec"

func ownGroup(*exec.Cmd) {}
