// Package guard runs one program and takes responsibility for everything that the program starts.
package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// CannotRun is the exit code when the program could not be started at all.
const CannotRun = 127

// Program is what [Run] runs.
type Program struct {
	Args []string
	// UID is the user and group to run as, -1 for the current one. Changing it needs root.
	UID int
	// Lifeline is closed by the kernel when the starter is gone; the tree is then killed. nil or a
	// file that cannot be read means that there is no starter to wait for.
	Lifeline *os.File
}

// Run starts the program, passes signals on to it, and returns its exit code after every process of its
// tree has ended. A program that was killed by signal s gives 128+s, as a shell would.
func Run(p Program) (int, error) {
	if err := adopt(); err != nil {
		return CannotRun, fmt.Errorf("become the parent of orphans: %w", err)
	}
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	cmd.SysProcAttr = attributes(p.UID)
	if err := cmd.Start(); err != nil {
		return CannotRun, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	abandoned := make(chan struct{})
	go watchLifeline(p.Lifeline, abandoned)
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case <-abandoned:
			killTree(cmd.Process.Pid)
			return CannotRun, errors.New("the starter is gone")
		case err := <-ended:
			killTree(cmd.Process.Pid)
			return exitCode(err), nil
		}
	}
}

func watchLifeline(lifeline *os.File, abandoned chan<- struct{}) {
	if lifeline == nil {
		return
	}
	if _, err := lifeline.Stat(); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, lifeline)
	close(abandoned)
}

func exitCode(err error) int {
	var exited *exec.ExitError
	if !errors.As(err, &exited) {
		return 0
	}
	if status, ok := exited.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exited.ExitCode()
}
