package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

const (
	// createLimit bounds the engine's part of a start.
	createLimit = time.Minute
	// callLimit is how long a container that the engine has started may take until it calls.
	callLimit = 20 * time.Second
	// endLimit is how long everything in a container may take to be gone after its end was asked for.
	endLimit = 5 * time.Second
	// goneLimit is how long we wait for that when nobody needs the answer any more: less than whoever started us waits for our end
	// (StopTimeout of package env), so that there is time to remove the container.
	goneLimit = 3 * time.Second
)

// order is what the inside of a container is told to do.
type order struct {
	Job        process.Job       `json:"job"`
	Supervisor supervisor.Limits `json:"supervisor"`
	// Kernel is that of the container's limits.
	Kernel int64 `json:"kernel,omitempty"`
	// Tmp is the folder below which the job's files are that come along, "" where they are there already.
	Tmp string `json:"tmp,omitempty"`
}

// order is one for a job that has these limits.
func (l limits) order(job process.Job, tmp string) order {
	return order{Job: job, Supervisor: l.Supervisor, Kernel: l.Kernel, Tmp: tmp}
}

// sent are the files and folders to read that come along.
func (o order) sent() (all []string) {
	for _, path := range append([]string{o.Job.Args[0]}, o.Job.Reads...) {
		if o.Tmp != "" && within(path, o.Tmp) && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// trees are what comes along.
func (o order) trees() ([]tree, error) {
	all := written(o.Job.Writes)
	for _, file := range o.sent() {
		rel, err := filepath.Rel(o.Tmp, file)
		if err != nil {
			return nil, err
		}
		all = append(all, tree{name: path.Join(readsName, filepath.ToSlash(rel)), path: file, links: true})
	}
	return all, nil
}

// outcome is what became of it.
type outcome struct {
	Code int `json:"code"`
	// Failed is why the program was not even started.
	Failed string `json:"failed,omitempty"`
}

// Run is the launcher of [process.Launcher]: it reads the settings of containers from one file and a job from another,
// starts a container, and behaves towards its parent process as the program in there would. kind is "tool" or "program".
// parentPipe is read until it ends, which ends the container; nil is none. When this process is killed, the container ends by itself.
func Run(settings, kind, file string, parentPipe *os.File) (int, error) {
	r, err := readRequest(settings, kind, file)
	if err != nil {
		return process.NotStarted, err
	}
	dir, err := os.MkdirTemp(r.scratch, "shim-")
	if err != nil {
		return process.NotStarted, fmt.Errorf("make a place for a socket: %w", err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := untilParentEnds(parentPipe)
	defer cancel()
	m := newMux(r.job.Reaches)
	listener, err := listen(filepath.Join(dir, "s"))
	if err != nil {
		return process.NotStarted, err
	}
	defer listener.Close()
	go m.answer(listener.Accept)
	if err := r.start(ctx, listener.Addr().String()); err != nil {
		return process.NotStarted, err
	}
	code, err := m.serveJob(ctx, r.limits.order(r.job, ""), r.limits.Output, r.mayLackSockets())
	if err != nil {
		r.remove()
	}
	return code, err
}

// untilParentEnds gives a context that ends with a pipe; nil is none.
func untilParentEnds(parentPipe *os.File) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if parentPipe != nil {
			_, _ = io.Copy(io.Discard, parentPipe)
			cancel()
		}
	}()
	return ctx, cancel
}

func readRequest(settings, kind, file string) (request, error) {
	var c Container
	var job process.Job
	if err := errors.Join(readJSON(settings, &c), readJSON(file, &job), os.Remove(file)); err != nil {
		return request{}, fmt.Errorf("read a job: %w", err)
	}
	prepare := c.program
	if kind == "tool" {
		prepare = c.tool
	}
	r, err := prepare(job)
	r.name, r.scratch = "operator-lab-sandbox-"+strings.ToLower(rand.Text()[:12]), filepath.Dir(file)
	return r, err
}

func readJSON(file string, to any) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	return err
}

// listen makes the socket. Everybody may call who sees it: the container's user, and nobody else, because the folder
// that it is in is closed to others.
func listen(socket string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("open the socket: %w", err), l.Close())
	}
	return l, nil
}

// start has the engine start the container.
func (r request) start(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	args := append(r.engineArgs, "--name", r.name,
		"--mount", "type=bind,source="+socket+",target="+socketPath+",readonly", imageRef, shimPath, "inside", socketPath)
	cmd := exec.CommandContext(ctx, r.Engine, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a container: %w: %s", errors.Join(err, ctx.Err()), strings.TrimSpace(said.String()))
	}
	return nil
}

// remove sees to it that a container ends whose first process may be unable to. Most are gone already, which is no error here.
func (r request) remove() {
	_, _ = r.engine(context.Background(), nil, "rm", "--force", "--volumes", r.name)
}

// called waits until the container has called, and gives the orders. hint is what may keep it from that.
func (m *mux) called(ctx context.Context, o order, hint string) (control, output net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for control == nil || output == nil {
		select {
		case control = <-m.control:
		case output = <-m.output:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("the container does not call%s: %w", hint, ctx.Err())
		}
	}
	trees, err := o.trees()
	if err == nil {
		err = pack(control, o, trees...)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeWrite(control))
	}
	return control, output, nil
}

// mayLackSockets says what a runtime that was chosen may be lacking.
func (r request) mayLackSockets() string {
	if r.Runtime == "" {
		return ""
	}
	return fmt.Sprintf(" (%s has to let it open Unix sockets of this machine; for runsc, runtimeArgs in /etc/docker/daemon.json: --host-uds=open)", r.Runtime)
}

// endedCode is the exit code of a program whose container has ended.
const endedCode = 128 + int(syscall.SIGKILL)

var errEnded = errors.New("the kernel has ended the whole container: it took more than it may have, or its machine has no memory left")

// serveJob gives the orders, and passes on what comes and goes, until everything in the container has ended. Of what the program
// prints it passes on so many bytes. A container that has ended without an answer gives errEnded.
func (m *mux) serveJob(ctx context.Context, ordered order, printed int64, hint string) (int, error) {
	control, output, err := m.called(ctx, ordered, hint)
	if err != nil {
		return process.NotStarted, err
	}
	if ordered.Job.Serves != "" {
		go m.serve(ctx, ordered.Job.Serves)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	hangUp := func() { _ = closeWrite(control) }
	context.AfterFunc(ctx, func() {
		hangUp()
		_ = control.SetReadDeadline(time.Now().Add(goneLimit))
		_ = output.SetReadDeadline(time.Now().Add(goneLimit))
	})
	go func() {
		for range signals {
			_, _ = control.Write([]byte{terminate})
		}
	}()
	var tooMuch atomic.Bool
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.CopyN(os.Stdout, output, printed)
		if n, _ := io.CopyN(io.Discard, output, 1); n > 0 {
			tooMuch.Store(true)
			hangUp()
		}
		_, _ = io.Copy(io.Discard, output)
	}()
	var o outcome
	left, err := unpack(control, &o)
	if ctx.Err() == nil {
		_ = output.SetReadDeadline(time.Now().Add(endLimit)) // the program may have given it to somebody who keeps it open
	}
	var kept error
	if err == nil {
		kept = left.into(ordered.Job.Returns, returned(ordered.Job)...)
	}
	hangUp()
	go drain(control) // of what is too much
	<-drained         // everything that held the other end has ended
	switch {
	case tooMuch.Load():
		return process.TooMuchOutput, errors.New("the program " + process.Exceeded(process.TooMuchOutput))
	case ctx.Err() != nil:
		return supervisor.CannotRun, errors.New("the starter is gone")
	case err != nil:
		return endedCode, errEnded
	case errors.Is(kept, errTooMuch):
		return 1, fmt.Errorf("the program left more than %d MiB behind", ordered.Job.Returns>>20)
	case kept != nil:
		return 1, fmt.Errorf("the program left behind what cannot be brought back: %w", kept)
	case o.Failed != "":
		return process.NotStarted, errors.New(o.Failed)
	}
	return o.Code, nil
}
