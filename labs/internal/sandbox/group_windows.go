package sandbox

import "os/exec"

func ownGroup(*exec.Cmd) {}
