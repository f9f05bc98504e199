package harness

import "os/exec"

func ownGroup(*exec.Cmd) {}
