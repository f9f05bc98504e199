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
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/guard"
)

const (
	// createLimit bounds the engine's part of a start.
	createLimit = time.Minute
	// callLimit is how long a container that the engine has started may take until it calls.
	callLimit = 20 * time.Second
	// endLimit is how long everything in a container may take to be gone after its end was asked for.
	endLimit = 5 * time.Second
)

// order is what the inside of a container is told to do.
type order struct {
	Job   Job          `json:"job"`
	Guard guard.Limits `json:"guard"`
}

// outcome is what became of it.
type outcome struct {
	Code int `json:"code"`
	// Failed is why the program was not even started.
	Failed string `json:"failed,omitempty"`
}

// Outside starts a container for the request in a file, and is to its starter what the program in there would be:
// it passes on output and SIGTERM, and its code is the exit code. lifeline is read until it ends, which ends the
// container; nil is none. When this process is killed, the container ends by itself.
func Outside(file string, lifeline *os.File) (int, error) {
	r, err := readRequest(file)
	if err != nil {
		return NotStarted, err
	}
	dir, err := os.MkdirTemp(r.Scratch, "cell-")
	if err != nil {
		return NotStarted, fmt.Errorf("make a place for a socket: %w", err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		if lifeline != nil {
			_, _ = io.Copy(io.Discard, lifeline)
			cancel()
		}
	}()
	board := newSwitchboard(r.Job.Reaches)
	listener, err := listen(filepath.Join(dir, "s"))
	if err != nil {
		return NotStarted, err
	}
	defer listener.Close()
	go board.answer(listener)
	if err := r.start(ctx, listener.Addr().String()); err != nil {
		return NotStarted, err
	}
	control, output, err := board.called(ctx, r)
	if err != nil {
		return NotStarted, err
	}
	if r.Job.Serves != "" {
		go board.serve(ctx, r.Job.Serves)
	}
	return r.attend(ctx, control, output)
}

func readRequest(file string) (request, error) {
	var r request
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read request: %w", err)
	}
	_ = os.Remove(file)
	return r, nil
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
	args := append(r.EngineArgs, "--name", "operator-lab-cell-"+strings.ToLower(rand.Text()[:12]),
		"--mount", "type=bind,source="+socket+",target="+socketPath+",readonly", imageRef, cellPath, "inside", socketPath)
	cmd := exec.CommandContext(ctx, r.Engine, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a container: %w: %s", errors.Join(err, ctx.Err()), strings.TrimSpace(said.String()))
	}
	return nil
}

// called waits until the container has called, and gives the orders.
func (s *switchboard) called(ctx context.Context, r request) (control, output *net.UnixConn, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for control == nil || output == nil {
		select {
		case control = <-s.control:
		case output = <-s.output:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("the container does not call: %w", ctx.Err())
		}
	}
	return control, output, pack(control, order{Job: r.Job, Guard: r.Limits.Guard}, r.Job.Writes)
}

// attend passes on what comes and goes, until everything in the container has ended.
func (r request) attend(ctx context.Context, control, output *net.UnixConn) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	hangUp := func() { _ = control.CloseWrite() }
	context.AfterFunc(ctx, func() {
		hangUp()
		_ = output.SetReadDeadline(time.Now().Add(endLimit))
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
		_, _ = io.CopyN(os.Stdout, output, r.Limits.Output)
		if n, _ := io.CopyN(io.Discard, output, 1); n > 0 {
			tooMuch.Store(true)
			hangUp()
		}
		_, _ = io.Copy(io.Discard, output)
	}()
	var o outcome
	left, err := unpack(control, &o)
	if err == nil {
		err = left.into(r.Job.returned(), r.Job.Returns)
	}
	hangUp()
	<-drained // everything that held the other end has ended
	switch {
	case tooMuch.Load():
		return TooMuchOutput, errors.New("the program " + Exceeded(TooMuchOutput))
	case ctx.Err() != nil:
		return guard.CannotRun, errors.New("the starter is gone")
	case errors.Is(err, errTooMuch):
		return 1, fmt.Errorf("the program left more than %d MiB behind", r.Job.Returns>>20)
	case err != nil:
		return 128 + int(syscall.SIGKILL), errors.New("the kernel has ended the whole container: it took more than it may have")
	case o.Failed != "":
		return NotStarted, errors.New(o.Failed)
	}
	return o.Code, nil
}
