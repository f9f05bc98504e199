package sandbox

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// Inside is the first process of a container: it calls on the socket, does what it is ordered to, and reports. It ends
// when the other side hangs up; everything else in the container ends with it, because the kernel sees to that.
func Inside(socket string) error {
	// The program runs as the same user, and is not to look into this process or to touch it.
	if err := conceal(); err != nil {
		return fmt.Errorf("conceal the first process: %w", err)
	}
	// Nor is it to go down with a program that leaves no room for another thread.
	if err := reserveThreads(); err != nil {
		return fmt.Errorf("reserve threads: %w", err)
	}
	control, err := call(socket, roleControl)
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	defer control.Close()
	printed, err := call(socket, roleOutput)
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	output, err := printed.File()
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	if err := printed.Close(); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	var o order
	left, err := unpack(control, &o)
	if err == nil {
		err = left.into(o.Job.Writes, math.MaxInt64) // the folder's size is the limit
	}
	if err == nil {
		err = open(socket, o.Job)
	}
	if err != nil {
		return pack(control, outcome{Failed: err.Error()}, "")
	}
	code, err := execute(control, output, o)
	if err != nil {
		return pack(control, outcome{Failed: err.Error()}, "")
	}
	return pack(control, outcome{Code: code}, returned(o.Job))
}

// execute runs the program under the supervisor.
func execute(control io.Reader, output *os.File, o order) (int, error) {
	read, parentPipe, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a parent pipe: %w", err)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // it does not end this process
	go obey(control, parentPipe)
	go endWhenCrowded(parentPipe)
	code, err := supervisor.Run(supervisor.Program{
		Args: o.Job.Args, Dir: o.Job.Dir, Env: o.Job.Env, Output: output, Limits: o.Supervisor, UID: -1, ParentPipe: read,
	})
	switch {
	case code != 0 && refusedTasks() > 0:
		code = supervisor.TooManyProcesses
	case code != 0 && killedForMemory() > 0:
		code = supervisor.TooMuchMemory
	case err != nil:
		fmt.Fprintln(output, "supervisor:", err)
	case code == process.NotStarted || code == process.TooMuchOutput:
		code = 1
	}
	return code, output.Close()
}

// crowdPeriod is how often it is looked whether there is room for another process. The look is a cheap one: with hundreds
// of processes that want the processor, the supervisor's own takes its time.
const crowdPeriod = 200 * time.Millisecond

// endWhenCrowded ends the program when the kernel has refused it a process or thread.
func endWhenCrowded(parentPipe io.Closer) {
	for range time.Tick(crowdPeriod) {
		if refusedTasks() > 0 {
			parentPipe.Close()
			return
		}
	}
}

// open makes the ways in and out that the job has.
func open(socket string, job process.Job) error {
	for place, address := range job.Reaches {
		if err := extend(socket, address, byte(place)); err != nil {
			return fmt.Errorf("listen at %s: %w", address, err)
		}
	}
	if job.Serves != "" {
		go offer(socket, job.Serves)
	}
	return nil
}

// obey passes on what the other side asks, until it hangs up.
func obey(control io.Reader, parentPipe io.Closer) {
	defer parentPipe.Close()
	asked := make([]byte, 1)
	for {
		if _, err := io.ReadFull(control, asked); err != nil {
			return
		}
		if self, err := os.FindProcess(os.Getpid()); err == nil && asked[0] == terminate {
			_ = self.Signal(syscall.SIGTERM) // the supervisor passes it on
		}
	}
}
