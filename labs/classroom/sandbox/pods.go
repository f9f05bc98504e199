package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/hashicorp/yamux"

	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// takePeriod is the time from one look for a container that nobody uses to the next.
	takePeriod = 50 * time.Millisecond
	// takeLimit is how long a learner's program may wait for one. A container that was ended for what it took is back in some
	// seconds.
	takeLimit = time.Minute
	// keySize is that of [Pods.Key].
	keySize = 32
	// stallLimit is how long a connection may stand still before it counts as lost.
	stallLimit = time.Minute
)

// Pods runs each job in one of a few containers of Pods, which do one job at a time and forget it ([Serve]). It travels as JSON to
// the program sandbox-shim.
type Pods struct {
	// Tools and Programs are where containers listen, host and port: those for tools of ours, and those for a learner's programs.
	Tools    []string `json:"tools"`
	Programs []string `json:"programs"`
	// Key is what the containers know us by, 32 bytes ([NewKey]).
	Key []byte `json:"key"`
	// Locks is a folder for a file for each of them.
	Locks string `json:"locks"`
	// Tmp is the folder that all of a job's files are below, here and there, or that are in the image of the containers.
	Tmp string `json:"tmp"`
	// Shim is our program in that image. The toolchain is there, too.
	Shim string `json:"shim"`
	Toolchain
}

// NewKey draws a key.
func NewKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	return key
}

// Launcher writes the settings to a file, and gives the launcher that reads them there. The caller sets its Scratch.
func (p Pods) Launcher(file string) (*process.Launcher, error) {
	if err := writeJSON(file, p); err != nil {
		return nil, fmt.Errorf("write the settings of Pods: %w", err)
	}
	return &process.Launcher{Command: []string{p.Shim, "send", file}}, nil
}

// Send is what [Run] is, with containers that listen already.
func Send(settings, kind, file string, parentPipe *os.File) (int, error) {
	var p Pods
	var job process.Job
	if err := errors.Join(readJSON(settings, &p), readJSON(file, &job), os.Remove(file)); err != nil {
		return process.NotStarted, fmt.Errorf("read a job: %w", err)
	}
	ctx, cancel := untilParentEnds(parentPipe)
	defer cancel()
	addresses, l, wait := p.Programs, programLimits, takeLimit
	if kind == "tool" {
		job = p.tool(job, p.Shim)
		addresses, l, wait = p.Tools, toolLimits, process.BuildLimit
	} else {
		job = program(job)
	}
	session, address, release, err := p.take(ctx, addresses, wait)
	if err != nil {
		return process.NotStarted, err
	}
	defer release()
	m := newMux(job.Reaches)
	go m.answer(session.Accept)
	return m.serveJob(ctx, order{Job: job, Supervisor: l.Supervisor, Tmp: p.Tmp}, l.Output, "", func() error { return podIsThere(ctx, address) })
}

// take connects to a container that nobody uses, and keeps it from others until release. One that is just being restarted is
// passed over.
func (p Pods) take(ctx context.Context, addresses []string, limit time.Duration) (s *yamux.Session, address string, release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("none of %d containers was free for %v", len(addresses), limit))
	defer cancel()
	tick := time.NewTicker(takePeriod)
	defer tick.Stop()
	for {
		for _, address := range addresses {
			lock := flock.New(filepath.Join(p.Locks, strings.ReplaceAll(address, ":", "-")))
			ok, err := lock.TryLock()
			if err != nil {
				return nil, "", nil, fmt.Errorf("lock a container: %w", err)
			}
			if !ok {
				continue
			}
			s, err := p.dial(ctx, address)
			if err == nil {
				return s, address, func() { s.Close(); _ = lock.Unlock() }, nil
			}
			if err := errors.Join(lock.Unlock(), notNow(err)); err != nil {
				return nil, "", nil, fmt.Errorf("connect to a container: %w", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, "", nil, context.Cause(ctx)
		}
	}
}

// notNow is an error of a connection, unless a machine has answered on which nobody listens at the moment.
func notNow(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return err
}

// podIsThere says whether the Pod is there, of which a container has ended: whoever answers, also that nobody listens, is there.
func podIsThere(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: dialLimit}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	return notNow(err)
}

func (p Pods) dial(ctx context.Context, address string) (*yamux.Session, error) {
	dialer := net.Dialer{Timeout: dialLimit}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(p.Key); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return yamux.Client(conn, sessions())
}

func sessions() *yamux.Config {
	c := yamux.DefaultConfig()
	c.ConnectionWriteTimeout, c.StreamCloseTimeout, c.LogOutput = stallLimit, stallLimit, io.Discard
	return c
}

// Serve is the first process of a container of a Pod. It listens on a port, and does the jobs of those who connect, one after the
// other. The first who connects chooses the key, and nobody is heard after that who does not know it: a learner's program may
// connect, too, from another container of the Pod. What a job leaves behind is gone before the next begins: processes, and all
// files of tmp, the only folder that can be written to. Serve ends when that fails.
func Serve(port, tmp string) error {
	if os.Getpid() != 1 {
		return errors.New("this is not the first process of a container, and would end all others")
	}
	if err := errors.Join(secure(), forget(tmp)); err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	jobs := make(chan net.Conn)
	go admit(l, jobs)
	for conn := range jobs {
		if err := serveOne(conn); err != nil {
			fmt.Fprintln(os.Stderr, "a job ended:", err)
		}
		if err := forget(tmp); err != nil {
			return err // the kubelet begins anew
		}
	}
	return nil
}

// admit passes on the connections of whoever knows the key.
func admit(l net.Listener, jobs chan<- net.Conn) {
	defer close(jobs)
	var mu sync.Mutex
	var key []byte
	knows := func(said []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if key == nil {
			key = said
		}
		return subtle.ConstantTimeCompare(key, said) == 1
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			said := make([]byte, keySize)
			_ = conn.SetReadDeadline(time.Now().Add(dialLimit))
			if _, err := io.ReadFull(conn, said); err != nil || !knows(said) {
				conn.Close()
				return
			}
			_ = conn.SetReadDeadline(time.Time{})
			jobs <- conn
		}()
	}
}

func serveOne(conn net.Conn) error {
	defer conn.Close()
	session, err := yamux.Server(conn, sessions())
	if err != nil {
		return err
	}
	defer session.Close()
	return work(context.Background(), calling(session.Open))
}

// forget ends all other processes and removes what they have written.
func forget(tmp string) error {
	endOthers()
	entries, err := os.ReadDir(tmp)
	for _, entry := range entries {
		path := filepath.Join(tmp, entry.Name())
		if entry.IsDir() {
			err = errors.Join(err, unlock(path))
		}
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// unlock makes folders such that what is in them can be removed.
func unlock(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}

func writeJSON(file string, what any) error {
	data, err := json.Marshal(what)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	return err
}
