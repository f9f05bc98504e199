// Command supervisor runs a program that nobody trusts and ends its whole process tree: when the program
// ends, when it is told to stop, and when the process that started it is gone.
//
//	supervisor [-uid N] [-memory MIB] [-processes N] program [args...]
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
	limits := supervisor.DefaultLimits
	uid := flag.Int("uid", -1, "user and group id to run as; -1 is that of the supervisor itself")
	memory := flag.Uint64("memory", limits.Memory>>20, "memory in MiB that the tree may take")
	flag.IntVar(&limits.Processes, "processes", limits.Processes, "processes that the tree may have")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: supervisor [-uid N] [-memory MIB] [-processes N] program [args...]")
		os.Exit(supervisor.CannotRun)
	}
	limits.Memory = *memory << 20
	syscall.CloseOnExec(parentPipe) // not the program's business
	code, err := supervisor.Run(supervisor.Program{
		Args: flag.Args(), Limits: limits, UID: *uid, ParentPipe: os.NewFile(parentPipe, "parent"),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
	}
	os.Exit(code)
}
