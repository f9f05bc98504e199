// Command guard runs a program that nobody trusts and ends its whole process tree: when the program
// ends, when guard is told to stop, and when whoever started guard is gone.
//
//	guard [-uid N] [-memory MIB] [-processes N] program [args...]
//
// File descriptor 3 is a pipe whose other end the starter holds open: its end is the starter's end.
package main

import (
	"flag"
	"fmt"
	"os"
	"syscall"

	"github.com/example/operator-lab/labs/internal/process/guard"
)

// parentPipe is the descriptor that the starter's end of the pipe hangs on.
const parentPipe = 3

func main() {
	limits := guard.DefaultLimits
	uid := flag.Int("uid", -1, "user and group id to run as; -1 is the one of guard itself")
	memory := flag.Uint64("memory", limits.Memory>>20, "memory in MiB that the tree may take")
	flag.IntVar(&limits.Processes, "processes", limits.Processes, "processes that the tree may have")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: guard [-uid N] [-memory MIB] [-processes N] program [args...]")
		os.Exit(guard.CannotRun)
	}
	limits.Memory = *memory << 20
	syscall.CloseOnExec(parentPipe) // not the program's business
	code, err := guard.Run(guard.Program{
		Args: flag.Args(), Limits: limits, UID: *uid, ParentPipe: os.NewFile(parentPipe, "parent"),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
	}
	os.Exit(code)
}
