package supervisor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/clusters/internal/process"
)

const (
	// beginPoll is how often to try an address that a program waits for.
	beginPoll = 5 * time.Millisecond
	// greenPoll is how often to ask a URL: each question is work for who is starting.
	greenPoll = 50 * time.Millisecond
	// shortLife is what a program that works lives at least. One that ends sooner
	// is started again after a pause that doubles each time, up to longPause.
	shortLife = 5 * time.Second
	pause     = 100 * time.Millisecond
	longPause = 5 * time.Second
	// logLimit is how much of a program's log is kept, in bytes: others than its owner may decide how much it writes.
	logLimit = 64 << 20
	logPoll  = time.Second
)

// Run is a supervisor's whole life: it starts the programs of the plan in dir,
// starts again what ends, and ends everything and removes dir when it is told to,
// or when whoever started it is gone without having kept it.
//
// It belongs into a process of its own, whose standard input is the parent pipe and
// whose standard output takes the news, and which works in dir, an absolute path.
func Run(dir string) error {
	// The kernel ends the programs together with the thread that started them.
	runtime.LockOSThread()
	s, err := newSupervisor(dir)
	if err != nil {
		return err
	}
	// The path of a socket may have about a hundred letters, that of the folder more.
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("work in %s: %w", dir, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // the terminal or the listener is gone
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range s.plan.Programs {
		go s.begin(ctx, i, 0)
	}
	words := make(chan byte)
	go readParentPipe(os.Stdin, words)
	logs := time.NewTicker(logPoll)
	defer logs.Stop()
	for {
		select {
		case <-logs.C:
			s.trimLogs()
		case i := <-s.due:
			s.start(i)
		case end := <-s.ended:
			s.recordEnd(ctx, end)
		case word, linked := <-words:
			switch {
			case linked && word == keepWord:
				s.state.Kept = true
				s.save()
			case !linked && !s.state.Kept:
				return s.end("whoever started it is gone")
			case !linked:
				words = nil
			}
		case sig := <-signals:
			return s.end("told to by " + sig.String())
		}
	}
}

type supervisor struct {
	dir   string
	plan  Plan
	state State
	live  map[int]*exec.Cmd // by index in the plan
	since map[int]time.Time // when each was started last
	brief map[int]int       // how often in a row each ended soon

	due   chan int
	ended chan ending
}

// ending is the end of one program.
type ending struct {
	index int
	how   string
}

func newSupervisor(dir string) (*supervisor, error) {
	s := &supervisor{
		dir: dir, live: map[int]*exec.Cmd{}, since: map[int]time.Time{}, brief: map[int]int{},
		due: make(chan int), ended: make(chan ending),
	}
	data, err := os.ReadFile(filepath.Join(dir, planFile))
	if err == nil {
		err = json.Unmarshal(data, &s.plan)
	}
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if s.state.Supervisor, err = process.Self(); err != nil {
		return nil, err
	}
	for _, p := range s.plan.Programs {
		s.state.Programs = append(s.state.Programs, Running{Name: p.Name, Ended: "not started yet"})
	}
	return s, writeJSON(filepath.Join(dir, stateFile), s.state)
}

// save writes the state down. Without it the processes still end, so there is
// nothing to do about a failure.
func (s *supervisor) save() {
	if err := writeJSON(filepath.Join(s.dir, stateFile), s.state); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
	}
}

// begin says when a program is due: after a pause, when its address answers.
func (s *supervisor) begin(ctx context.Context, index int, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	p, every := s.plan.Programs[index], beginPoll
	if isURL(p.After) {
		every = greenPoll
	}
	for tick := time.NewTicker(every); p.After != "" && !answers(ctx, p.After, p.Token); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
	select {
	case s.due <- index:
	case <-ctx.Done():
	}
}

// answers says whether somebody takes connections at an address. For one with a
// port that means TLS: the system takes connections for a server that only listens
// and is far from serving.
func answers(ctx context.Context, address, token string) bool {
	var conn net.Conn
	var err error
	// Who answers is checked by those who have something to say.
	insecure := &tls.Config{InsecureSkipVerify: true}
	switch {
	case isURL(address):
		return isGreen(ctx, address, token, insecure)
	case strings.Contains(address, ":"):
		d := tls.Dialer{Config: insecure}
		conn, err = d.DialContext(ctx, "tcp", address)
	default:
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", address)
	}
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func isURL(address string) bool { return strings.HasPrefix(address, "https://") }

// isGreen says whether an address answers with 200.
func isGreen(ctx context.Context, address, token string, config *tls.Config) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// start starts a program. One that cannot be started counts as ended.
func (s *supervisor) start(index int) {
	p, state := s.plan.Programs[index], &s.state.Programs[index]
	state.Starts++
	s.since[index] = time.Now()
	cmd, err := s.run(p)
	if err != nil {
		state.Ended = err.Error()
		s.save()
		s.notify(*state)
		return
	}
	state.Ended = ""
	if state.Process, err = process.Of(cmd.Process.Pid); err != nil {
		state.Process = process.ID{PID: cmd.Process.Pid} // it has ended already
	}
	s.live[index] = cmd
	s.save()
	go func() {
		_ = cmd.Wait()
		s.ended <- ending{index, cmd.ProcessState.String()}
	}()
}

func (s *supervisor) run(p Program) (*exec.Cmd, error) {
	log, err := os.OpenFile(Log(s.dir, p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", p.Name, err)
	}
	defer log.Close() // the program has its own
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir, cmd.Env = s.dir, append([]string{"HOME=" + s.dir, "TMPDIR=" + s.dir}, p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	return cmd, cmd.Start()
}

// trimLogs begins a log anew that has become too long. Whoever writes appends, wherever the log ends.
func (s *supervisor) trimLogs() {
	names := []string{Self}
	for _, p := range s.plan.Programs {
		names = append(names, p.Name)
	}
	for _, name := range names {
		name = Log(s.dir, name)
		if info, err := os.Stat(name); err != nil || info.Size() <= logLimit {
			continue
		}
		if err := os.Truncate(name, 0); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor:", err)
		}
	}
}

// recordEnd notes the end of a program and has it started again.
func (s *supervisor) recordEnd(ctx context.Context, e ending) {
	state := &s.state.Programs[e.index]
	delete(s.live, e.index)
	state.Ended = e.how
	s.save()
	s.notify(*state)
	wait := time.Duration(0)
	if time.Since(s.since[e.index]) < shortLife {
		wait = min(pause<<min(s.brief[e.index], 10), longPause)
		s.brief[e.index]++
	} else {
		s.brief[e.index] = 0
	}
	go s.begin(ctx, e.index, wait)
}

// notify sends the news to whoever started us, if they still listen.
func (s *supervisor) notify(r Running) { _ = json.NewEncoder(os.Stdout).Encode(r) }

// Self is the name under which a supervisor tells of its own end.
const Self = "supervisor"

// end ends all programs and removes the folder. If somebody still listens, it says
// why.
func (s *supervisor) end(why string) error {
	s.notify(Running{Name: Self, Process: s.state.Supervisor, Ended: why})
	for _, cmd := range s.live {
		_ = cmd.Process.Kill()
	}
	for len(s.live) > 0 {
		select {
		case e := <-s.ended:
			delete(s.live, e.index)
		case <-s.due: // not any more
		}
	}
	return os.RemoveAll(s.dir)
}

// readParentPipe passes on what the starter says, and closes words when there is
// nobody left who could say anything.
func readParentPipe(parentPipe *os.File, words chan<- byte) {
	defer close(words)
	word := make([]byte, 1)
	for {
		n, err := parentPipe.Read(word)
		if n == 1 {
			words <- word[0]
		}
		if err != nil {
			return
		}
	}
}
