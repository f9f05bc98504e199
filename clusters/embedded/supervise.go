package embedded

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A supervisor is a process that runs the programs of one control plane. It works in the control plane's folder, and:
//   - ends all programs and removes the folder when the process that started it ends, unless it was told to keep them;
//   - ends all programs and keeps the folder, with the logs, when one of them ends by itself;
//   - takes commands, one byte each, from a named pipe in the folder.
//
// It and its programs hold a lock on a file in the folder. So every process can tell whether they run, in other PID
// namespaces, too.

// superviseCommand is the first argument of this executable when it is a supervisor. The folder follows.
const superviseCommand = "supervise-embedded-control-plane"

// init makes this process a supervisor when it was started as one. An importer has nothing to do for that.
func init() { //nolint:gochecknoinits // there is no other place that every importer has
	if len(os.Args) != 3 || os.Args[1] != superviseCommand {
		return
	}
	if err := supervise(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The files of a supervisor in the folder of its control plane.
const (
	lockFile    = "lock"
	controlFile = "control"
	logFolder   = "logs"
)

// The commands of a supervisor. Keep comes through its standard input, where it cannot be overtaken by the end of whoever
// sends it.
const (
	keepCommand     = 'k'
	endCommand      = 'e'
	restartCommand  = 'r' // the controller manager
	pauseCommand    = 'p'
	continueCommand = 'c'
	orphanedCommand = 'o' // from the supervisor itself
)

// program is one program of a control plane. It works in the control plane's folder, and has no environment but Env.
type program struct {
	Name string
	Path string
	Args []string
	Env  []string
	// After is what has to be there before the program starts: a file, or a URL that answers with 200.
	After string
}

// plan is what a supervisor reads from its standard input.
type plan struct {
	Programs []program
	// Token is the bearer token with which URLs are asked.
	Token string
}

const (
	// filePoll is how often to look for a file that a program waits for, and urlPoll for a URL: each of these
	// questions is work for a server that is starting.
	filePoll = 5 * time.Millisecond
	urlPoll  = 50 * time.Millisecond
)

// supervisor is the state of the process that is one.
type supervisor struct {
	dir      string
	commands chan byte
	due      chan program // whose turn it is to start
	ended    chan exit
	running  map[string]*exec.Cmd
}

// exit is the end of a program.
type exit struct {
	program program
	state   string
}

// supervise is the whole life of a supervisor.
func supervise(dir string) error {
	runtime.LockOSThread() // the kernel ends the programs together with the thread that started them
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	// The path of a socket has about a hundred letters at most, and that of the folder may have more.
	if err := os.Chdir(dir); err != nil {
		return err
	}
	var p plan
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&p); err != nil {
		return errors.Join(err, os.RemoveAll(dir)) // the starter has ended
	}
	control, err := os.OpenFile(controlFile, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s := &supervisor{
		dir: dir, commands: make(chan byte), due: make(chan program), ended: make(chan exit), running: map[string]*exec.Cmd{},
	}
	for _, next := range p.Programs {
		go s.await(next, p.Token)
	}
	go s.read(control)
	go func() {
		s.read(io.MultiReader(input.Buffered(), os.Stdin))
		s.commands <- orphanedCommand
	}()
	return s.run()
}

func (s *supervisor) run() error {
	kept, restarting := false, false
	for {
		select {
		case p := <-s.due:
			if err := s.start(p); err != nil {
				s.endAll()
				return err
			}
		case e := <-s.ended:
			delete(s.running, e.program.Name)
			if restarting && e.program.Name == controllerManager {
				restarting = false
				go func() { s.due <- e.program }()
				continue
			}
			s.endAll()
			return fmt.Errorf("%s ended: %s", e.program.Name, e.state)
		case command := <-s.commands:
			switch command {
			case keepCommand:
				kept = true
			case restartCommand:
				restarting = s.signal(syscall.SIGKILL, controllerManager)
			case pauseCommand:
				s.signal(syscall.SIGSTOP, Components()...)
			case continueCommand:
				s.signal(syscall.SIGCONT, Components()...)
			case orphanedCommand, endCommand:
				if command == orphanedCommand && kept {
					continue
				}
				s.endAll()
				return os.RemoveAll(s.dir)
			}
		}
	}
}

// read passes commands on until its input ends.
func (s *supervisor) read(input io.Reader) {
	for one := make([]byte, 1); ; {
		n, err := input.Read(one)
		if n == 1 {
			s.commands <- one[0]
		}
		if err != nil {
			return
		}
	}
}

// await says when a program is due.
func (s *supervisor) await(p program, token string) {
	poll := filePoll
	if isURL(p.After) {
		poll = urlPoll
	}
	for tick := time.NewTicker(poll); p.After != "" && !answers(p.After, token); <-tick.C {
	}
	s.due <- p
}

func isURL(after string) bool { return strings.HasPrefix(after, "https://") }

// answers says whether a file is there, or a URL answers with 200.
func answers(after, token string) bool {
	if !isURL(after) {
		return exists(after)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, after, http.NoBody)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+token)
	// The programs check who answers. This process only asks whether there is a server.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: time.Second}).Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s *supervisor) start(p program) error {
	log, err := os.OpenFile(logOf(s.dir, p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the program has its own
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir, cmd.Env = s.dir, append([]string{"HOME=" + s.dir, "TMPDIR=" + s.dir}, p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = endsWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.running[p.Name] = cmd
	go func() {
		_ = cmd.Wait()
		s.ended <- exit{p, cmd.ProcessState.String()}
	}()
	return nil
}

// signal sends a signal to programs, and says whether one of them runs.
func (s *supervisor) signal(sig os.Signal, names ...string) (running bool) {
	for _, name := range names {
		if cmd := s.running[name]; cmd != nil {
			running = cmd.Process.Signal(sig) == nil || running
		}
	}
	return running
}

// endAll kills all programs: nobody needs their data.
func (s *supervisor) endAll() {
	s.signal(syscall.SIGKILL, Components()...)
	for len(s.running) > 0 {
		select {
		case e := <-s.ended:
			delete(s.running, e.program.Name)
		case <-s.due: // not any more
		case <-s.commands:
		}
	}
}

// handle is the supervisor of a cluster that this process made.
type handle struct {
	stdin io.WriteCloser
	done  chan struct{} // closed when the supervisor has ended
}

// startSupervisor starts a supervisor in the folder dir.
func startSupervisor(dir string, p plan) (h *handle, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start supervisor: %w", err)
		}
	}()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, logFolder), 0o700), unix.Mkfifo(filepath.Join(dir, controlFile), 0o600)); err != nil {
		return nil, err
	}
	log, err := os.Create(logOf(dir, "supervisor"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	lock, _, err := tryLock(dir, os.O_CREATE)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the supervisor has its own
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, superviseCommand, dir)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h = &handle{stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		_ = cmd.Wait() // the log says how it ended
	}()
	return h, json.NewEncoder(stdin).Encode(p)
}

// keep lets the supervisor outlive this process.
func (h *handle) keep() error {
	_, err := h.stdin.Write([]byte{keepCommand})
	return err
}

// tryLock opens the lock file of a folder. locked says that nobody else had the lock, and that it is held until the file
// is closed, by all processes that have it.
func tryLock(dir string, flag int) (file *os.File, locked bool, err error) {
	if file, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|flag, 0o600); err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, errors.Join(err, file.Close())
	}
	return file, err == nil, nil
}

// running says whether the supervisor in dir or one of its programs runs.
func running(dir string) (bool, error) {
	file, locked, err := tryLock(dir, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !locked, file.Close()
}

// errNotRunning says that no supervisor takes commands.
var errNotRunning = errors.New("its supervisor does not run")

// send gives a command to the supervisor in dir.
func send(dir string, command byte) error {
	control, err := os.OpenFile(filepath.Join(dir, controlFile), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) {
		return errNotRunning
	}
	if err != nil {
		return err
	}
	_, err = control.Write([]byte{command})
	return errors.Join(err, control.Close())
}

const (
	// endTimeout is what a supervisor has to end its programs.
	endTimeout = 10 * time.Second
	// endPoll is how often to look whether it has.
	endPoll = 5 * time.Millisecond
)

// end ends the supervisor in dir and its programs, and removes dir.
func end(dir string) error {
	for deadline := time.Now().Add(endTimeout); ; time.Sleep(endPoll) {
		alive, err := running(dir)
		switch {
		case err != nil:
			return err
		case !alive:
			return os.RemoveAll(dir)
		case time.Now().After(deadline):
			return fmt.Errorf("processes that work in %s do not end", dir)
		}
		// One that is only just starting takes no commands yet.
		if err := send(dir, endCommand); err != nil && !errors.Is(err, errNotRunning) {
			return err
		}
	}
}

func logOf(dir, program string) string { return filepath.Join(dir, logFolder, program+".log") }
