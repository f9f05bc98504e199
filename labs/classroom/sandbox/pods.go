package sandbox

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/hashicorp/yamux"

	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// takePeriod is the time from one look for a container that nobody uses, or for whatever else may be free soon, to the next.
	takePeriod = 50 * time.Millisecond
	// takeLimit is how long a learner's program may wait for one.
	takeLimit = time.Minute
	// lastMessage is a file of the node in each container of a Pod, in which nobody is to leave anything for the next job.
	lastMessage = "/dev/termination-log"
	// What a container answers who knows the key: that the job can come, that it does or forgets another one, or that it has been
	// forgetting one for too long to be waited for.
	heard, busy, stuck = 'h', 'b', 's'
	// keySize is that of [Pods.Key].
	keySize = 32
	// openLimit is how long the way to a new Pod may be closed: a network plugin learns of it when it is there.
	openLimit = 30 * time.Second
	// heardLimit is how long a container may take to answer.
	heardLimit = 10 * time.Second
	// stallLimit is how long a connection may stand still before it counts as lost.
	stallLimit = time.Minute
	// forgetLimit is how long a container may take to forget a job: half as long as a program waits for one.
	forgetLimit = takeLimit / 2
)

// Pods runs each job in one of a few containers of Pods, which do one job at a time and forget it ([Serve]). It travels as JSON to
// the program sandbox-shim.
type Pods struct {
	// Tools and Programs are where containers listen, host and port: those for tools of ours, and those for a learner's programs.
	Tools    []string `json:"tools"`
	Programs []string `json:"programs"`
	// Key is what the containers know us by, 32 bytes ([NewKey]).
	Key []byte `json:"key"`
	// Identities are the digests of the containers' certificates, by address. [Pods.Claim] finds them out.
	Identities map[string]string `json:"identities"`
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

// Claim makes the key known to all containers, and learns who they are, before a learner's program runs in one of them. It waits for
// those that cannot be reached yet.
func (p *Pods) Claim(ctx context.Context) error {
	p.Identities = map[string]string{}
	for _, address := range slices.Concat(p.Tools, p.Programs) {
		err := retry(ctx, openLimit, isUnreachable, func() error {
			s, identity, err := p.dial(ctx, address)
			if err != nil {
				return err
			}
			p.Identities[address] = identity
			return s.Close()
		})
		if err != nil {
			return fmt.Errorf("claim a container: %w", err)
		}
	}
	return nil
}

// retry asks until there is an answer, or an error that does not pass. One that passes is the answer after the limit.
func retry(ctx context.Context, limit time.Duration, passes func(error) bool, ask func() error) error {
	for begun := time.Now(); ; {
		err := ask()
		if err == nil || !passes(err) || time.Since(begun) > limit {
			return err
		}
		select {
		case <-time.After(takePeriod):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// isUnreachable says whether no connection was made at all.
func isUnreachable(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
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
	switch {
	case errors.Is(err, errAllEnded):
		return endedCode, err
	case err != nil:
		return process.NotStarted, err
	}
	defer release()
	m := newMux(job.Reaches)
	go m.answer(session.Accept)
	code, err := m.serveJob(ctx, l.order(job, p.Tmp), l.Output, "")
	if errors.Is(err, errEnded) {
		if err := p.ended(ctx, address); err != nil {
			return process.NotStarted, err
		}
	}
	return code, err
}

// ended marks a container that has ended while it did a job. An error says that it is there, or that nobody can tell.
func (p Pods) ended(ctx context.Context, address string) error {
	switch err := p.there(ctx, address); {
	case err == nil:
		return errors.New("the connection to a container was lost")
	case !isAnother(err):
		if err := p.Intact(ctx); err != nil {
			return err
		}
	}
	return os.WriteFile(p.mark(address), nil, 0o600)
}

// mark is a file that says that a container has ended while it did a job.
func (p Pods) mark(address string) string { return p.lock(address) + ".ended" }

func (p Pods) marked(address string) bool {
	_, err := os.Stat(p.mark(address))
	return err == nil
}

func (p Pods) lock(address string) string {
	return filepath.Join(p.Locks, strings.ReplaceAll(address, ":", "-"))
}

// Intact is an error if the Pod is lost: then none of the containers is there any more, and what programs have not done says
// nothing about them. That programs have ended all containers is no error: they end those alone that they run in.
func (p Pods) Intact(ctx context.Context) error {
	all := slices.Concat(p.Tools, p.Programs)
	if !slices.ContainsFunc(all, func(address string) bool { return !p.marked(address) }) {
		return nil
	}
	answers := make(chan error)
	for _, address := range all {
		go func() { answers <- p.there(ctx, address) }()
	}
	var lost []error
	for range all {
		lost = append(lost, <-answers)
	}
	if slices.Contains(lost, nil) {
		return nil
	}
	return errors.Join(lost...)
}

// there is an error if a container does not answer as the one that was claimed. One that hangs up may be about to end, and is asked
// again for a while.
func (p Pods) there(ctx context.Context, address string) error {
	return retry(ctx, heardLimit, hungUp, func() error {
		s, _, err := p.dial(ctx, address)
		switch {
		case err == nil:
			return s.Close()
		case errors.Is(err, errBusy), errors.Is(err, errStuck):
			return nil
		}
		return err
	})
}

// errAllEnded says that no container is left for a program, because of other ones.
var errAllEnded = errors.New("programs have ended all containers: they took more than they may have")

// take connects to a container that nobody uses, and keeps it from others until release. One that has ended is passed over,
// whoever listens in its place. If all have ended, that is errAllEnded.
func (p Pods) take(ctx context.Context, addresses []string, limit time.Duration) (s *yamux.Session, address string, release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("none of %d containers was free for %v", len(addresses), limit))
	defer cancel()
	tick := time.NewTicker(takePeriod)
	defer tick.Stop()
	for {
		ended := 0
		for _, address := range addresses {
			if p.marked(address) {
				ended++
				continue
			}
			lock := flock.New(p.lock(address))
			ok, err := lock.TryLock()
			if err != nil {
				return nil, "", nil, fmt.Errorf("lock a container: %w", err)
			}
			if !ok {
				continue
			}
			if s, _, err = p.dial(ctx, address); err == nil {
				return s, address, func() { s.Close(); _ = lock.Unlock() }, nil
			}
			_ = lock.Unlock()
			if isAnother(err) || errors.Is(err, errStuck) {
				ended++
			}
		}
		if ended == len(addresses) {
			return nil, "", nil, errAllEnded
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, "", nil, context.Cause(ctx)
		}
	}
}

// isAnother says whether a machine has answered on which nobody listens any more, or somebody else.
func isAnother(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errImpostor)
}

// canaryLimit is how long a connection may take that nothing keeps from being made.
const canaryLimit = time.Second

// NodeEnv has the address of the node on which a sandbox is, where there is one.
const NodeEnv = "NODE_IP"

// Reached are those of the addresses that a connection can be made to within a second. Variables in them, such as [NodeEnv], are
// those of this process; without one there is no address to try, and an error says so.
func Reached(addresses []string) ([]string, error) {
	var wait sync.WaitGroup
	var unknown error
	connected := make([]string, len(addresses))
	for i, address := range addresses {
		address = os.Expand(address, func(name string) string {
			value := os.Getenv(name)
			if value == "" {
				unknown = fmt.Errorf("%s is not set in this container", name)
			}
			return value
		})
		wait.Go(func() {
			if conn, err := net.DialTimeout("tcp", address, canaryLimit); err == nil {
				connected[i] = address
				conn.Close()
			}
		})
	}
	wait.Wait()
	return slices.DeleteFunc(connected, func(address string) bool { return address == "" }), unknown
}

// dial connects to a container, which is the same as before if it was claimed, and makes itself known.
func (p Pods) dial(ctx context.Context, address string) (s *yamux.Session, identity string, err error) {
	dialer := net.Dialer{Timeout: dialLimit}
	plain, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, "", err
	}
	_ = plain.SetDeadline(time.Now().Add(heardLimit))
	conn := tls.Client(plain, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // nobody vouches for it but whoever claimed it
		VerifyConnection: func(state tls.ConnectionState) error {
			identity = fmt.Sprintf("%x", sha256.Sum256(state.PeerCertificates[0].Raw))
			if known := p.Identities[address]; known != "" && known != identity {
				return errors.New("its certificate is another one")
			}
			return nil
		},
	})
	answer := make([]byte, 1)
	if _, err = conn.Write(p.Key); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	switch {
	case hungUp(err): // it may be a node that is busy, or has no room for another connection
		return nil, "", errors.Join(err, conn.Close())
	case err != nil:
		return nil, "", errors.Join(errImpostor, err, conn.Close())
	case answer[0] == busy:
		return nil, "", errors.Join(errBusy, conn.Close())
	case answer[0] != heard:
		return nil, "", errors.Join(errStuck, conn.Close())
	}
	_ = conn.SetDeadline(time.Time{})
	s, err = yamux.Client(conn, sessions())
	return s, identity, err
}

// hungUp says whether somebody listens who has not said who they are.
func hungUp(err error) bool {
	return slices.ContainsFunc([]error{os.ErrDeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}, func(known error) bool {
		return errors.Is(err, known)
	})
}

var (
	errBusy  = errors.New("the container does another job, or forgets it")
	errStuck = errors.New("the container does not forget a job")
)

// errImpostor says that somebody listens who is not the container that was claimed, and who it may be is not known.
var errImpostor = errors.New("it is not the container that it was")

// newIdentity is a certificate that nobody vouches for.
func newIdentity() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	certificate, err := x509.CreateCertificate(nil, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}, err
}

func sessions() *yamux.Config {
	c := yamux.DefaultConfig()
	c.ConnectionWriteTimeout, c.StreamCloseTimeout, c.LogOutput = stallLimit, stallLimit, io.Discard
	return c
}

// Serve is the first process of a container of a Pod. It listens on a port, and does the jobs of those who connect, one after the
// other. The first who connects chooses the key ([Pods.Claim]), and nobody is heard after that who does not know it: a learner's
// program may connect, too, from another container of the Pod. That one may also listen in the place of a container that has ended,
// so each container has a certificate, by which it is known from then on. What a job leaves behind is gone before the next begins:
// processes, and all files of tmp, the only folder that can be written to. Serve ends when that fails, and nobody starts it again.
func Serve(port, tmp string) error {
	if os.Getpid() != 1 {
		return errors.New("this is not the first process of a container, and would end all others")
	}
	if err := errors.Join(secure(), limitFiles(), forget(tmp)); err != nil {
		return err
	}
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", ":"+port, &tls.Config{Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s := &server{jobs: make(chan net.Conn)}
	go s.admit(l)
	for conn := range s.jobs {
		if err := s.serveOne(conn, tmp); err != nil {
			return err
		}
	}
	return nil
}

// server is what a container knows about itself.
type server struct {
	jobs chan net.Conn // gets one when the one before is forgotten

	mu         sync.Mutex
	key        []byte
	busy       bool
	forgetting time.Time // since when, zero while it does a job
}

// knows says whether it is the key, and what is to be answered. After heard, the container is taken.
func (s *server) knows(key []byte) (answer byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		s.key = key
	}
	switch {
	case subtle.ConstantTimeCompare(s.key, key) == 0:
		return 0, false
	case !s.busy:
		s.busy = true
		return heard, true
	case !s.forgetting.IsZero() && time.Since(s.forgetting) > forgetLimit:
		return stuck, true
	}
	return busy, true
}

func (s *server) now(busy bool, forgetting time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.forgetting = busy, forgetting
}

// admit passes on the connections of whoever knows the key, one when the one before is over.
func (s *server) admit(l net.Listener) {
	each(l.Accept, func(conn net.Conn) {
		said := make([]byte, keySize)
		_ = conn.SetReadDeadline(time.Now().Add(dialLimit))
		_, err := io.ReadFull(conn, said)
		answer, ok := byte(0), false
		if err == nil {
			answer, ok = s.knows(said)
		}
		if ok {
			_, _ = conn.Write([]byte{answer}) // whoever does not read it has no job
		}
		if answer != heard {
			conn.Close()
			return
		}
		_ = conn.SetReadDeadline(time.Time{})
		s.jobs <- conn
	})
}

// serveOne does a job, and forgets it before the next one may come.
func (s *server) serveOne(conn net.Conn, tmp string) error {
	session, err := yamux.Server(conn, sessions())
	if err == nil {
		err = work(context.Background(), calling(session.Open))
		session.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "a job ended:", err)
	}
	conn.Close()
	s.now(true, time.Now())
	if err := forget(tmp); err != nil {
		return err
	}
	s.now(false, time.Time{})
	return nil
}

// forget ends all other processes and removes what they have written. A folder may be one of thousands in each other, and closed to
// its owner: so it is opened, and the folders in it are moved to the top, before it is removed.
func forget(tmp string) error {
	endOthers()
	_ = os.Truncate(lastMessage, 0)
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	var dirs []string
	remove := func(path string, entry os.DirEntry) error {
		if !entry.IsDir() {
			return os.Remove(path)
		}
		top := filepath.Join(tmp, fmt.Sprintf("%s-%d", rand.Text(), len(dirs)))
		dirs = append(dirs, top)
		return errors.Join(os.Chmod(path, 0o700), os.Rename(path, top))
	}
	for _, entry := range entries {
		if err := remove(filepath.Join(tmp, entry.Name()), entry); err != nil {
			return err
		}
	}
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		inside, err := os.ReadDir(dir)
		for _, entry := range inside {
			err = errors.Join(err, remove(filepath.Join(dir, entry.Name()), entry))
		}
		if err := errors.Join(err, os.Remove(dir)); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(file string, what any) error {
	data, err := json.Marshal(what)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	return err
}
