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
	"runtime"
	"syscall"
	"time"
)

// Exit codes of Run that are not the program's own.
const (
	// CannotRun: the program could not be started at all.
	CannotRun = 127
	// TooMuchMemory and TooManyProcesses: it was killed for what it took of the machine.
	TooMuchMemory    = 125
	TooManyProcesses = 124
)

// Limits are what a program and everything that it starts may take of the machine together. They keep a
// program's faults from becoming the machine's; a decent one never comes near them. 0 is no limit. They
// hold on Linux only, where a process can be told from its descendants.
type Limits struct {
	// Memory is in bytes, without what programs share.
	Memory uint64
	// Processes are counted without their threads.
	Processes int
	// Threads are counted with processes that have only one. Whoever has more is told of too many processes.
	Threads int
	// File is the size of one file in bytes. The kernel ends a process that writes more, with SIGXFSZ.
	File uint64
}

// DefaultLimits are those of a learner's program. A manager takes 50 MB and one process; below 1 GB of
// free memory the doctor lets no lab run.
var DefaultLimits = Limits{Memory: 1 << 30, Processes: 100, File: 256 << 20}

// Exceeded says which limit a program was killed for whose exit code this is, "" for none. It completes
// a sentence that begins with the program.
func Exceeded(code int) string {
	switch code {
	case TooMuchMemory:
		return fmt.Sprintf("used more than %d MiB of memory", DefaultLimits.Memory>>20)
	case TooManyProcesses:
		return fmt.Sprintf("started more than %d processes", DefaultLimits.Processes)
	}
	return ""
}

// lookInterval is the time from one look at what the program takes to the next. In it a program that
// does nothing else takes some hundred megabytes more.
const lookInterval = 200 * time.Millisecond

// Program is what [Run] runs.
type Program struct {
	Args []string
	// Dir, Env and Output are the folder that it works in, its environment, and where it prints to; the zero values are
	// those of this process.
	Dir    string
	Env    []string
	Output *os.File
	// Limits are watched over from its start to its end.
	Limits Limits
	// UID is the user and group to run as, -1 for the current one. Changing it needs root. With one from [NewUser], every
	// process of that user ends with the program.
	UID int
	// Terminate asks the program to end, once for each value. With nil, the signals of this process do: SIGTERM and SIGINT are
	// passed on.
	Terminate <-chan struct{}
	// ParentPipe is closed by the kernel when the starter is gone; the tree is then killed. nil or a
	// file that cannot be read means that there is no starter to wait for.
	ParentPipe *os.File
}

// Run starts the program, asks it to end when it is told to, and returns its exit code after every process of its
// tree has ended. A program that was killed by signal s gives 128+s, as a shell would.
func Run(p Program) (int, error) {
	if err := adopt(); err != nil {
		return CannotRun, fmt.Errorf("become the parent of orphans: %w", err)
	}
	if err := p.Limits.set(p.UID); err != nil {
		return CannotRun, fmt.Errorf("limit %s: %w", p.Args[0], err)
	}
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	if p.Output != nil {
		cmd.Stdout, cmd.Stderr = p.Output, p.Output
	}
	cmd.SysProcAttr = attributes(p.UID)
	signals := make(chan os.Signal, 4) // from before the program runs, or one that comes at once is lost
	if p.Terminate == nil {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		defer signal.Stop(signals)
	}
	runtime.LockOSThread() // keys are a thread's
	defer runtime.UnlockOSThread()
	withhold()
	if err := cmd.Start(); err != nil {
		return CannotRun, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	abandoned := make(chan struct{})
	go func() {
		if watchParentPipe(p.ParentPipe) {
			EndUser(p.UID) // at once: hundreds of threads that want the processor make a look take seconds
			close(abandoned)
		}
	}()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case <-p.Terminate:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-abandoned:
			killTree(cmd.Process.Pid, p.UID)
			return CannotRun, errors.New("the starter is gone")
		case <-look.C:
			if code := p.Limits.exceeded(); code != 0 {
				killTree(cmd.Process.Pid, p.UID)
				return code, errors.New("the program " + Exceeded(code))
			}
		case err := <-ended:
			killTree(cmd.Process.Pid, p.UID)
			if code := exitCode(err); code != CannotRun {
				return code, nil
			}
			return 1, nil // it did run: CannotRun is not its to say
		}
	}
}

// firstUser and users are the range of [NewUser]: above all that containers and systemd take, and below what the kernel
// mistakes for negative (https://systemd.io/UIDS-GIDS).
const (
	firstUser = 0x70000000
	users     = 1 << 26
)

// NewUser draws a user id that no process has, for [Program]. The one after it belongs to it: nobody else gets that either.
func NewUser() int { return firstUser + 2*rand.IntN(users) }

// EndUser kills all processes of a user of [NewUser], those that escaped from their supervisor, or have outlived it, among them.
// It needs root. Of other users it kills nothing.
func EndUser(uid int) {
	if drawn(uid) {
		killUser(uid)
	}
}

// drawn says that a user is one of [NewUser].
func drawn(uid int) bool { return uid >= firstUser && uid < firstUser+2*users }

// exceeded is the exit code of the limit that the descendants of this process are above, 0 for none.
func (l Limits) exceeded() int {
	if l.Memory == 0 && l.Processes == 0 && l.Threads == 0 {
		return 0 // the look itself costs a program under measurement something
	}
	memory, processes, threads := taken()
	switch {
	case l.Memory > 0 && memory > l.Memory:
		return TooMuchMemory
	case l.Processes > 0 && processes > l.Processes, l.Threads > 0 && threads > l.Threads:
		return TooManyProcesses
	}
	return 0
}

// watchParentPipe returns when the starter is gone, and says whether there was one.
func watchParentPipe(parentPipe *os.File) bool {
	if parentPipe == nil {
		return false
	}
	if _, err := parentPipe.Stat(); err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, parentPipe)
	return true
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
