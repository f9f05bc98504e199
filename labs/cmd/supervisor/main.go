// Command supervisor runs a program with a learner's code and ends its whole process tree: when the program ends, when it is told to
// stop, and when the process that started it is gone.
//
//	supervisor [-uid N] program [args...]
//
// File descriptor 3 is a pipe whose other end the parent process holds open: when it closes, that process has ended.
package main

import (
	"flag"
	"fmt"
	"os"
	"syscall"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// parentPipe is the descriptor of the pipe to the parent process.
const parentPipe = 3

func main() {
	uid := flag.Int("uid", -1, "user and group id to run as; -1 is that of the supervisor itself")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: supervisor [-uid N] program [args...]")
		os.Exit(supervisor.CannotRun)
	}
	syscall.CloseOnExec(parentPipe) // not the program's business
	code, err := supervisor.Run(flag.Args(), *uid, os.NewFile(parentPipe, "parent"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
	}
	os.Exit(code)
}
