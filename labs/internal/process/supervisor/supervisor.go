// Package supervisor runs one program and takes responsibility for everything that the program starts.
package supervisor

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// CannotRun is the exit code of [Run] where the program could not be started at all.
const CannotRun = 127

// Memory is what each process of a learner's program may have that it shares with nobody, in bytes. A manager takes 50 MB; below 1 GB
// of free memory the doctor lets no lab run. On Linux the kernel keeps the limit; the Go runtime then says "out of memory", and ends.
const Memory = 1 << 30

// Run starts a program, passes SIGTERM and SIGINT on to its process group, as a terminal does, and returns its exit code after every
// process of its tree has ended. A program that was killed by signal s gives 128+s, as a shell would. uid is the user and group to run
// as, which needs root; -1 is the current one. With one from [NewUser], every process of that user ends with the program. parentPipe is
// closed by the kernel when the starter is gone; the tree is then killed. A file that cannot be read means that there is no starter to
// wait for.
func Run(args []string, uid int, parentPipe *os.File) (int, error) {
	if err := adopt(); err != nil {
		return CannotRun, fmt.Errorf("become the parent of orphans: %w", err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// A session without a terminal: whoever has the one of this process opens it as /dev/tty, and can type into it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	signals := make(chan os.Signal, 4) // from before the program runs, or one that comes at once is lost
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return CannotRun, fmt.Errorf("start %s: %w", args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	abandoned := make(chan struct{})
	go func() {
		if _, err := parentPipe.Stat(); err == nil {
			_, _ = io.Copy(io.Discard, parentPipe)
			close(abandoned)
		}
	}()
	defer killTree(cmd.Process.Pid, uid)
	for {
		select {
		case s := <-signals:
			_ = syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal)) // a session begins with a group of its own
		case <-abandoned:
			return CannotRun, nil // no word of it: what is printed here is in the program's output
		case err := <-ended:
			if code := exitCode(err); code != CannotRun {
				return code, nil
			}
			return 1, nil // it did run: CannotRun is not its to say
		}
	}
}

// firstUser and users are the range of [NewUser]: above all that containers and systemd take, and below what the kernel mistakes for
// negative (https://systemd.io/UIDS-GIDS).
const (
	firstUser = 0x70000000
	users     = 1 << 27
)

// NewUser draws a user id that no process has.
func NewUser() int { return firstUser + rand.IntN(users) }

func exitCode(err error) int {
	exited, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0
	}
	if status, ok := exited.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exited.ExitCode()
}
