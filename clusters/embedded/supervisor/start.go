package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// keepWord is what tells a supervisor over its parent pipe that it shall go on alone.
const keepWord = 'k'

// Handle is a supervisor that this process started, and that ends with it.
type Handle struct {
	// Ended tells of programs that ended; it is closed when the supervisor ends.
	Ended <-chan Running

	pid        int
	parentPipe *os.File
	done       chan struct{} // closed when the supervisor has ended
}

// Start starts a supervisor for the plan in dir. command is a program that calls
// [Run] with its last argument, which is dir. The supervisor and all its programs
// end when this process does, in whatever way, unless Keep was called.
func Start(dir string, command ...string) (*Handle, error) {
	log, err := os.OpenFile(Log(dir, Self), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	defer log.Close()
	read, parentPipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	defer read.Close()
	cmd := exec.Command(command[0], append(command[1:], dir)...)
	cmd.Env = os.Environ()
	cmd.Stdin, cmd.Stderr = read, log
	cmd.SysProcAttr = ownSession()
	news, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		parentPipe.Close()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	ended := make(chan Running, 64)
	h := &Handle{Ended: ended, pid: cmd.Process.Pid, parentPipe: parentPipe, done: make(chan struct{})}
	go h.follow(cmd, news, ended)
	return h, nil
}

// follow passes on the news. It holds the handle, and with it the parent pipe, for as
// long as the supervisor runs.
func (h *Handle) follow(cmd *exec.Cmd, news io.Reader, ended chan<- Running) {
	defer close(h.done)
	defer close(ended)
	defer h.parentPipe.Close()
	for d := json.NewDecoder(news); ; {
		var r Running
		if err := d.Decode(&r); err != nil {
			break
		}
		select {
		case ended <- r:
		default: // nobody has listened for a long time
		}
	}
	_ = cmd.Wait() // how it ended does not matter any more
}

// PID is the process number of the supervisor.
func (h *Handle) PID() int { return h.pid }

// End tells the supervisor to end everything and waits until it has ended. What it
// may have left is a matter of the function [End].
func (h *Handle) End() {
	select {
	case <-h.done: // its number may be somebody else's by now
		return
	default:
	}
	_ = ask(h.pid)
	select {
	case <-h.done:
	case <-time.After(endTimeout):
	}
}

// Keep lets the supervisor and its programs outlive this process.
func (h *Handle) Keep() error {
	if _, err := h.parentPipe.Write([]byte{keepWord}); err != nil {
		return fmt.Errorf("keep supervisor: %w", err)
	}
	return nil
}

// restartTimeout is what a supervisor has to start a program again, without the
// pauses that it makes where a program ends again and again.
const restartTimeout = 10 * time.Second

// Restart ends a program of the plan in dir and returns when its supervisor has
// started it again.
func Restart(dir, program string) error {
	pid, err := running(dir, program)
	if err != nil {
		return fmt.Errorf("restart %s: %w", program, err)
	}
	kill(pid)
	old := func() bool {
		now, err := running(dir, program)
		return err != nil || now == pid
	}
	if !gone(restartTimeout, old) {
		return fmt.Errorf("restart %s: it does not come back within %v", program, restartTimeout)
	}
	return nil
}

// running is the process of a program of the plan in dir.
func running(dir, program string) (pid int, err error) {
	state, err := ReadState(dir)
	if err != nil {
		return 0, err
	}
	p := state.Program(program)
	if p == nil || p.Ended != "" || !p.Process.Alive() {
		return 0, errors.New("it is not running")
	}
	return p.Process.PID, nil
}
