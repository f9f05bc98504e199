// Command cell stands on both sides of a container in which a learner's code is built or run.
//
//	cell run REQUEST           on this machine: starts the container, and is to its starter what the program in there would be
//	cell run -tied REQUEST     the same; file descriptor 3 is a pipe whose end is the end of it all
//	cell inside SOCKET         in the container: its first process
//	cell cache BASE OWN        in the container: a build cache for the Go command (GOCACHEPROG) that is read from BASE, and written to OWN
//	cell cache -keep BASE OWN  on this machine: the same, and what is read from BASE is kept in OWN, too
package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/example/operator-lab/labs/internal/buildcache"
	"github.com/example/operator-lab/labs/internal/sandbox"
)

// lifeline is the descriptor that the starter's end of a pipe hangs on, under -tied.
const lifeline = 3

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "cell:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	switch {
	case len(args) == 2 && args[0] == "run":
		return sandbox.Outside(args[1], nil)
	case len(args) == 3 && slices.Equal(args[:2], []string{"run", "-tied"}):
		syscall.CloseOnExec(lifeline)
		return sandbox.Outside(args[2], os.NewFile(lifeline, "lifeline"))
	case len(args) == 2 && args[0] == "inside":
		err = sandbox.Inside(args[1])
	case len(args) == 3 && args[0] == "cache":
		err = buildcache.Cache{Base: args[1], Own: args[2]}.Serve(os.Stdin, os.Stdout)
	case len(args) == 4 && slices.Equal(args[:2], []string{"cache", "-keep"}):
		err = buildcache.Cache{Base: args[2], Own: args[3], Keep: true}.Serve(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("unknown arguments %q", args)
	}
	if err != nil {
		return sandbox.NotStarted, err
	}
	return 0, nil
}
