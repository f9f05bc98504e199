package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// Inside is the first process of a container: it calls on the socket, does what it is ordered to, and reports. It ends
// when the other side hangs up; everything else in the container ends with it, because the kernel sees to that.
func Inside(socket string) error {
	if err := secure(); err != nil {
		return err
	}
	return work(context.Background(), overSocket(socket))
}

// secure makes this process one that a program of the same user does no harm.
func secure() error {
	// The program runs as the same user, and is not to look into this process or to touch it.
	if err := conceal(); err != nil {
		return fmt.Errorf("conceal the first process: %w", err)
	}
	if err := filterCalls(); err != nil {
		return fmt.Errorf("keep the program from the first process: %w", err)
	}
	// Nor is it to go down with a program that leaves no room for another thread.
	if err := reserveThreads(); err != nil {
		return fmt.Errorf("reserve threads: %w", err)
	}
	// Nor is it to have this machine write files, when it crashes.
	if err := refuseCoreDumps(); err != nil {
		return fmt.Errorf("refuse core dumps: %w", err)
	}
	// Nor is it to keep this process busy with signals.
	if err := ignoreSignals(); err != nil {
		return fmt.Errorf("ignore signals: %w", err)
	}
	return nil
}

// work does one job, and waits until the other side hangs up.
func work(ctx context.Context, call caller) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	control, err := call(roleControl)
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	defer control.Close()
	// Whoever closes first may cut off what the other one is still sending, and then does not read why.
	defer drain(control)
	printed, err := call(roleOutput)
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	output, passedOn, err := writeInto(printed)
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	var o order
	arrived, err := unpack(control, &o)
	if err == nil && len(o.Job.Args) == 0 {
		err = errors.New("the order has no program")
	}
	if err == nil {
		err = o.place(arrived)
	}
	if err == nil {
		err = open(ctx, call, o.Job)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.ENOSPC): // nothing of ours is there for as long, or is as large
		go drain(control)
		fmt.Fprintf(output, "there is no room for this program beside what the workspace has: %v\n", err)
		output.Close()
		passedOn()
		return report(control, outcome{Code: 1}, returned(o.Job)...)
	case err != nil:
		go drain(control)
		output.Close()
		return report(control, outcome{Failed: err.Error()})
	}
	code, err := execute(ctx, control, output, o)
	passedOn()
	if err != nil {
		return report(control, outcome{Failed: err.Error()})
	}
	return report(control, outcome{Code: code}, returned(o.Job)...)
}

// report says what became of a job. The other side waits for the end of it, also where there is something that cannot be packed.
func report(control net.Conn, o outcome, left ...tree) error {
	err := pack(control, o, left...)
	if err != nil {
		err = errors.Join(err, closeWrite(control))
	}
	return err
}

// drain reads to the end, and keeps nothing.
func drain(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// place puts what came with the order where the program looks for it. The size of the folders is the limit.
func (o order) place(arrived archive) error {
	to := written(o.Job.Writes)
	if o.Tmp != "" {
		for _, path := range o.sent() {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		to = append(to, tree{name: readsName, path: o.Tmp, links: true})
	}
	for _, t := range to {
		if err := os.MkdirAll(t.path, 0o755); err != nil {
			return err
		}
	}
	return arrived.into(math.MaxInt64, to...)
}

// writeInto gives a file for what a program prints, which goes into conn; passedOn waits until all of it has, or for a while
// where a process that outlives the program has the file open. A socket is a file itself.
func writeInto(conn net.Conn) (file *os.File, passedOn func(), err error) {
	if socket, ok := conn.(*net.UnixConn); ok {
		file, err = socket.File()
		return file, func() {}, errors.Join(err, socket.Close())
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(conn, read)
		read.Close()
		conn.Close()
	}()
	return write, func() {
		select {
		case <-done:
		case <-time.After(endLimit):
		}
	}, nil
}

// execute runs the program under the supervisor.
func execute(ctx context.Context, control io.Reader, output *os.File, o order) (int, error) {
	read, parentPipe, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("make a parent pipe: %w", err), output.Close())
	}
	defer read.Close()
	isProgram := o.Kernel > 0
	if isProgram {
		if err := filterProgram(); err != nil {
			return 0, errors.Join(fmt.Errorf("keep the program from what it does not need: %w", err), output.Close())
		}
	}
	before, watchKernel := countEvents(), isProgram && memoryIsLimited()
	terminateProgram := make(chan struct{}, 1)
	go obey(control, parentPipe, terminateProgram)
	var full atomic.Bool
	go endWhen(ctx, parentPipe, func() bool {
		if watchKernel && int64(kernelMemory()) > o.Kernel || isProgram && tooManySockets() {
			full.Store(true)
		}
		return full.Load() || refusedTasks() > before.refused
	})
	if node := os.Getenv(NodeEnv); node != "" {
		o.Job.Env = append(o.Job.Env, NodeEnv+"="+node)
	}
	code, err := supervisor.Run(supervisor.Program{
		Args: o.Job.Args, Dir: o.Job.Dir, Env: o.Job.Env, Output: output, Limits: o.Supervisor, UID: -1, ParentPipe: read,
		Terminate: terminateProgram,
	})
	if code != 0 {
		exceeded, isShort := countEvents().exceeded(before, full.Load())
		switch {
		case isShort != nil:
			return 0, errors.Join(isShort, output.Close())
		case exceeded != 0:
			return exceeded, output.Close()
		}
	}
	switch {
	case err != nil:
		fmt.Fprintln(output, "supervisor:", err)
	case code == process.NotStarted || code == process.TooMuchOutput:
		code = 1
	}
	return code, output.Close()
}

// events are what the kernel has counted of a container so far.
type events struct {
	refused int // tasks that it was refused
	killed  int // processes that were killed for want of memory, its own or the machine's
	full    int // how often it had taken all memory that it may have
}

// exceeded is the exit code for what a program has taken too much of since before, 0 for nothing. ended says that we have ended it
// for that. An error says that the machine was short of memory, and not the container.
func (e events) exceeded(before events, ended bool) (code int, err error) {
	switch {
	case e.refused > before.refused:
		return supervisor.TooManyProcesses, nil
	case ended, e.killed > before.killed && e.full > before.full:
		return supervisor.TooMuchMemory, nil
	case e.killed > before.killed:
		return 0, errors.New("the kernel has ended the program, because this machine has no memory left")
	}
	return 0, nil
}

// crowdPeriod is how often it is looked whether a program takes too much of what the kernel counts for a container. The look is a
// cheap one: with hundreds of processes that want the processor, the supervisor's own takes its time.
const crowdPeriod = 200 * time.Millisecond

// endWhen ends the program when it is too much.
func endWhen(ctx context.Context, parentPipe io.Closer, tooMuch func() bool) {
	look := time.NewTicker(crowdPeriod)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if tooMuch() {
			parentPipe.Close()
			return
		}
	}
}

// open makes the ways in and out that the job has.
func open(ctx context.Context, call caller, job process.Job) error {
	for place, address := range job.Reaches {
		if err := extend(ctx, call, address, byte(place)); err != nil {
			return fmt.Errorf("listen at %s: %w", address, err)
		}
	}
	if job.Serves != "" {
		go offer(call, job.Serves)
	}
	return nil
}

// obey passes on what the other side asks, until it hangs up.
func obey(control io.Reader, parentPipe io.Closer, terminateProgram chan<- struct{}) {
	defer parentPipe.Close()
	asked := make([]byte, 1)
	for {
		if _, err := io.ReadFull(control, asked); err != nil {
			return
		}
		if asked[0] != terminate {
			continue
		}
		select {
		case terminateProgram <- struct{}{}:
		default: // it is about to be asked
		}
	}
}
