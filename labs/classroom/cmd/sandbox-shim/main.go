// Command sandbox-shim stands on both sides of a container in which a learner's code is built or run.
//
//	sandbox-shim run SETTINGS tool JOB     on this machine: runs a tool of ours in a container, and behaves towards its parent process as the tool would
//	sandbox-shim run SETTINGS program JOB  the same for a program of a learner; the end of file descriptor 3, a pipe, is the end of it all
//	sandbox-shim inside SOCKET             in the container: its first process
//	sandbox-shim send SETTINGS KIND JOB    on this machine: as run, in a container of a Pod that listens
//	sandbox-shim serve PORT DIR            in such a container: its first process, which forgets what is in DIR after each job
//	sandbox-shim reach ADDRESS...          in such a container: prints which of them it can connect to
//	sandbox-shim cache BASE OWN            in the container: a build cache for the Go command (GOCACHEPROG) that is read from BASE, and written to OWN
//	sandbox-shim cache -keep BASE OWN      on this machine: the same, and what is read from BASE is kept in OWN, too
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/example/operator-lab/labs/classroom/sandbox"
	"github.com/example/operator-lab/labs/classroom/sandbox/buildcache"
	"github.com/example/operator-lab/labs/internal/process"
)

// parentPipe is the descriptor of the pipe to the parent process.
const parentPipe = 3

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-shim:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	launch := map[string]func(settings, kind, file string, parentPipe *os.File) (int, error){"run": sandbox.Run, "send": sandbox.Send}
	switch {
	case len(args) == 4 && launch[args[0]] != nil && args[2] == "tool":
		return launch[args[0]](args[1], args[2], args[3], nil)
	case len(args) == 4 && launch[args[0]] != nil && args[2] == "program":
		syscall.CloseOnExec(parentPipe)
		return launch[args[0]](args[1], args[2], args[3], os.NewFile(parentPipe, "parent"))
	case len(args) == 2 && args[0] == "inside":
		err = sandbox.Inside(args[1])
	case len(args) == 3 && args[0] == "serve":
		err = sandbox.Serve(args[1], args[2])
	case len(args) > 1 && args[0] == "reach":
		var reached []string
		reached, err = sandbox.Reached(args[1:])
		fmt.Println(strings.Join(reached, " "))
	case len(args) == 3 && args[0] == "cache":
		err = buildcache.Cache{Base: args[1], Own: args[2]}.Serve(os.Stdin, os.Stdout)
	case len(args) == 4 && slices.Equal(args[:2], []string{"cache", "-keep"}):
		err = buildcache.Cache{Base: args[2], Own: args[3], Keep: true}.Serve(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("unknown arguments %q", args)
	}
	if err != nil {
		return process.NotStarted, err
	}
	return 0, nil
}
