package sandbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// pod is a container that listens: this test binary as the first process of its own process table, with 4 MiB of its own where
// tmp is here.
func pod(t *testing.T, tmp string) (address string, end func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: another process table cannot be made")
	}
	address = free(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	const script = `mount -t tmpfs -o size=4m none "$1" && exec "$2" serve "$3" "$1"`
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc",
		"sh", "-c", script, "-", tmp, os.Args[0], port)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		end()
		if t.Failed() {
			t.Logf("the container said %q", &said)
		}
	})
	gomega.NewWithT(t).Eventually(func() error { return accepts(address) }).WithTimeout(deadline).Should(gomega.Succeed())
	return address, end
}

// accepts says whether somebody listens at an address.
func accepts(address string) error {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		conn.Close()
	}
	return err
}

// container is one that listens.
type container struct {
	process.Runner
	pods    Pods
	tmp     string // where files of jobs are
	address string
	end     func()
}

func newContainer(t *testing.T) container {
	t.Helper()
	tmp, scratch := t.TempDir(), t.TempDir()
	address, end := pod(t, tmp)
	p := Pods{Programs: []string{address}, Key: NewKey(), Locks: scratch, Tmp: tmp, Shim: os.Args[0]}
	if err := p.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	launcher, err := p.Launcher(filepath.Join(scratch, "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	launcher.Scratch = scratch
	return container{process.Runner{Launcher: launcher}, p, tmp, address, end}
}

// run gives what a job printed, and its exit code.
func (c container) run(t *testing.T, job process.Job) (string, int) {
	t.Helper()
	cmd, err := c.Program(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func TestAJobBringsItsFilesIntoAPodAndBackFromThere(t *testing.T) {
	c := newContainer(t)
	for name, text := range map[string]string{"home/given": "given", "code/a/main.go": "package main", "secret": "not sent"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(c.tmp, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.tmp, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/main.go", filepath.Join(c.tmp, "code", "link")); err != nil {
		t.Fatal(err)
	}
	job := shell(filepath.Join(c.tmp, "home"), "cat given ../code/link; cat ../secret; echo made > made; exit 7")
	job.Reads, job.Returns = []string{filepath.Join(c.tmp, "code")}, 1000
	out, code := c.run(t, job)
	if code != 7 || !strings.HasPrefix(out, "givenpackage main") || strings.Contains(out, "not sent") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if made, err := os.ReadFile(filepath.Join(c.tmp, "home", "made")); string(made) != "made\n" {
		t.Errorf("it left %q, %v", made, err)
	}
}

func TestNothingOfAJobIsLeftForTheNext(t *testing.T) {
	c := newContainer(t)
	home := filepath.Join(c.tmp, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	c.run(t, shell(home, "mkdir ../own; echo secret > ../own/file; chmod 0 ../own; setsid sleep 1000 & cd ..; i=0; while [ $i -lt 300 ]; do mkdir a-rather-long-name && cd a-rather-long-name; i=$((i+1)); done"))
	out, _ := c.run(t, shell(home, "ls -A ..; set -- /proc/[0-9]*; echo $#"))
	// Processes: the first one, and sh of this job, which reads /proc itself.
	if out != "home\n2\n" {
		t.Errorf("there are %q", out)
	}
}

// The first process has the user of the programs. Where it may open no file, or comes last, it watches over nothing.
func TestAProgramChangesNothingOfTheFirstProcess(t *testing.T) {
	c := newContainer(t)
	for _, command := range []string{
		"prlimit --pid 1 --fsize=0:0", "prlimit --pid 1 --nofile=3:", "chrt --idle -p 0 1", "chrt -a --other -p 0 1", "taskset -p 1 1", "ionice -c 3 -p 1",
		"renice -n 19 -p 1", "renice -n 19 -u 0",
	} {
		if out, code := c.run(t, shell(c.tmp, "exec "+command)); code == 0 || !strings.Contains(out, "Operation not permitted") {
			t.Errorf("%s: exit code %d, output %q", command, code, out)
		}
	}
	if out, code := c.run(t, shell(c.tmp, "exec grep core /proc/self/limits")); code != 0 || strings.Join(strings.Fields(out), " ") != "Max core file size 1 1 bytes" {
		t.Errorf("a program that crashes is written to files: exit code %d, limits %q", code, out)
	}
	if out, code := c.run(t, shell(c.tmp, "ulimit -n 100; echo own")); code != 0 || out != "own\n" {
		t.Errorf("a program sets limits of its own: exit code %d, output %q", code, out)
	}
}

// attempts are what a program does not get, with whatever filter of its own an engine has: there is none here.
var attempts = map[string]func() error{
	"a namespace, by clone": func() error {
		return (&exec.Cmd{Path: "/proc/self/exe", SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}}).Start()
	},
	"a namespace, by unshare":  call(unix.SYS_UNSHARE, unix.CLONE_NEWUTS),
	"a namespace of another":   call(unix.SYS_SETNS, ^uintptr(0), 0),
	"a mount":                  call(unix.SYS_MOUNT),
	"a mount without a place":  call(unix.SYS_FSMOUNT, ^uintptr(0)),
	"a key":                    call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, 0),
	"asynchronous input":       call(unix.SYS_IO_SETUP, 1, 0),
	"a filter, by seccomp":     func() error { return install([]bpf.Instruction{allow}) },
	"a filter, by prctl":       call(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0),
	"a core for itself":        call(unix.SYS_PRCTL, unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_CREATE, 0),
	"core dumps":               call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE),
	"core dumps, by setrlimit": call(unix.SYS_SETRLIMIT, unix.RLIMIT_CORE),
	"all disks":                call(unix.SYS_SYNC),
	"a disk":                   call(unix.SYS_SYNCFS, ^uintptr(0)),
	"secret memory":            call(unix.SYS_MEMFD_SECRET, 0),
	"shared memory":            call(unix.SYS_SHMGET, unix.IPC_PRIVATE, 1, 0o600),
	"a message queue":          call(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600),
	"a semaphore":              call(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, 0o600),
	"a named queue":            call(unix.SYS_MQ_OPEN),
}

// call makes a system call, with arguments of which the kernel itself says something other than "not permitted".
func call(number uintptr, arguments ...uintptr) func() error {
	return func() error {
		all := append(arguments, 0, 0, 0)
		if _, _, errno := unix.RawSyscall(number, all[0], all[1], all[2]); errno != 0 {
			return errno
		}
		return nil
	}
}

func TestAProgramGetsNothingThatTheMachineHasOnce(t *testing.T) {
	c := newContainer(t)
	for name := range attempts {
		if out, _ := c.run(t, shell(c.tmp, "exec "+os.Args[0]+" try '"+name+"'")); !strings.Contains(out, "operation not permitted") {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// flood sends the first process signals without end, some of which the kernel keeps in a queue.
func flood() {
	for n := 0; ; n = (n + 1) % 64 {
		_ = syscall.Kill(1, syscall.Signal(n+1))
		_ = syscall.Kill(1, 40)
	}
}

// The first process has nothing to do with signals of a program: it goes on watching over it, and ends it.
func TestSignalsDoNotKeepTheFirstProcessBusy(t *testing.T) {
	c := newContainer(t)
	flood := "for n in 1 2 3; do " + os.Args[0] + " flood & done; "
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd, err := c.Program(ctx, shell(c.tmp, flood+"n=0; while [ $n -lt 120 ]; do sleep 1000 & n=$((n+1)); done; wait"))
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != supervisor.TooManyProcesses {
		t.Errorf("120 processes beside signals: exit code %d, output %q", cmd.ProcessState.ExitCode(), out)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if cmd, err = c.Program(ctx, shell(c.tmp, "trap '' TERM; "+flood+"echo begun; wait")); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = &onFirst{do: cancel}
	_ = cmd.Run()
	if out, code := c.run(t, shell(c.tmp, "echo next")); code != 0 || out != "next\n" {
		t.Errorf("after a program that was ended: exit code %d, output %q", code, out)
	}
}

// onFirst does something when something is written to it.
type onFirst struct{ do func() }

func (w *onFirst) Write(p []byte) (int, error) {
	w.do()
	return len(p), nil
}

// A container that has no room for another connection hangs up, and it is the same one when it has room again.
func TestWhoHangsUpIsAskedAgain(t *testing.T) {
	c := newContainer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if n < 3 {
				conn.Close()
				continue
			}
			there, err := net.Dial("tcp", c.address)
			if err != nil {
				conn.Close()
				return
			}
			go join(conn, there)
		}
	}()
	p := c.pods
	p.Programs, p.Identities = []string{l.Addr().String()}, map[string]string{l.Addr().String(): p.Identities[c.address]}
	s, _, release, err := p.take(t.Context(), p.Programs, deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s.Close()
}

// A container of an older template has no NODE_IP, and Go takes an empty host for this one.
func TestAnAddressThatNobodyNamesIsNotTried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	addresses := []string{"[$" + NodeEnv + "]:" + port}
	t.Setenv(NodeEnv, "127.0.0.1")
	if reached, err := Reached(addresses); err != nil || len(reached) != 1 {
		t.Errorf("reached %q, %v", reached, err)
	}
	t.Setenv(NodeEnv, "")
	if _, err := Reached(addresses); err == nil || !strings.Contains(err.Error(), NodeEnv) {
		t.Errorf("without an address: %v", err)
	}
}

// A network plugin opens the way to a Pod when it has learnt of it, which may be after the Pod is ready.
func TestAContainerThatCannotBeReachedYetIsWaitedFor(t *testing.T) {
	c := newContainer(t)
	p := c.pods
	p.Programs = []string{free(t)}
	time.AfterFunc(200*time.Millisecond, func() {
		l, err := net.Listen("tcp", p.Programs[0])
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		there, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Error(err)
			return
		}
		join(conn, there)
	})
	if err := p.Claim(t.Context()); err != nil || p.Identities[p.Programs[0]] != c.pods.Identities[c.address] {
		t.Errorf("Claim() = %v, and it is %q", err, p.Identities)
	}
}

func TestOnlyWhoKnowsTheKeyHasAJobDone(t *testing.T) {
	c := newContainer(t)
	other := c.pods
	other.Key = NewKey()
	if err := other.Claim(t.Context()); err == nil {
		t.Error("somebody else claims the container, too")
	}
	if out, code := c.run(t, shell(c.tmp, "echo first")); out != "first\n" || code != 0 {
		t.Fatalf("exit code %d, output %q", code, out)
	}
	silent, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if out, code := c.run(t, shell(c.tmp, "echo second")); out != "second\n" || code != 0 {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// A container ends when its program takes more memory than it may have. That is the program's doing; the end of the Pod is not.
func TestTheEndOfAContainerIsItsProgramsDoing(t *testing.T) {
	c := newContainer(t)
	cmd, err := c.Program(t.Context(), shell(c.tmp, "echo begun; sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	c.end()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
	if err := c.pods.Intact(t.Context()); err != nil {
		t.Errorf("a program has ended its container, and the Pod is lost: %v", err)
	}
	if out, code := c.run(t, shell(c.tmp, "echo next")); code != endedCode || !strings.Contains(out, "ended all containers") {
		t.Errorf("there is no container left, and the exit code of the next program is %d: %s", code, out)
	}
}

func TestAPodIsLostWhenContainersEndThatNobodyUses(t *testing.T) {
	first, endFirst := pod(t, t.TempDir())
	second, endSecond := pod(t, t.TempDir())
	p := Pods{Tools: []string{first}, Programs: []string{second}, Key: NewKey(), Locks: t.TempDir()}
	if err := p.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	endFirst()
	if err := p.Intact(t.Context()); err != nil {
		t.Errorf("a container is left: %v", err)
	}
	endSecond()
	if p.Intact(t.Context()) == nil {
		t.Error("no container is left, and no program has ended any")
	}
}

// A container reads what is sent until the other side hangs up. Else that one would say that the connection was lost, and not why:
// nothing of ours is so large.
func TestWhyAJobCannotBeginIsSaidWhileItIsSent(t *testing.T) {
	c := newContainer(t)
	large := filepath.Join(c.tmp, "large")
	if err := os.WriteFile(large, make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	job := shell(c.tmp, "echo begun")
	job.Reads = []string{large}
	if out, code := c.run(t, job); code != 1 || !strings.Contains(out, "no space left on device") {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// A program may listen where a container has listened, which it has brought to its end: they share their addresses.
func TestNobodyTakesThePlaceOfAContainer(t *testing.T) {
	c := newContainer(t)
	c.end()
	identity, err := newIdentity()
	if err != nil {
		t.Fatal(err)
	}
	impostor, err := tls.Listen("tcp", c.address, &tls.Config{Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Close()
	said := make(chan int, 1)
	go func() {
		conn, err := impostor.Accept()
		if err != nil {
			return
		}
		n, _ := io.ReadFull(conn, make([]byte, keySize))
		conn.Close()
		said <- n
	}()
	if _, _, err := c.pods.dial(t.Context(), c.address); !errors.Is(err, errImpostor) {
		t.Errorf("dial() = %v", err)
	}
	if n := <-said; n != 0 {
		t.Errorf("it was told %d bytes of the key", n)
	}
}

// Whoever listens there may as well say nothing that we understand. There are other containers.
func TestAContainerThatIsAnothersIsPassedOver(t *testing.T) {
	tmp := t.TempDir()
	first, end := pod(t, tmp)
	second, _ := pod(t, tmp)
	p := Pods{Programs: []string{first, second}, Key: NewKey(), Locks: t.TempDir(), Tmp: tmp, Shim: os.Args[0]}
	if err := p.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	l, err := net.Listen("tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	launcher, err := p.Launcher(filepath.Join(p.Locks, "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	launcher.Scratch = p.Locks
	c := container{Runner: process.Runner{Launcher: launcher}}
	if out, code := c.run(t, shell(tmp, "echo done")); code != 0 || out != "done\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// The containers of a Pod share their addresses. What a program reaches may be another's for a moment, when one that ran before has
// not left it yet; for longer it is another program that has it, which is none of the machine's doing.
func TestAnAddressOfAnotherProgramIsWaitedForAndThenTheirDoing(t *testing.T) {
	c := newContainer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	job := shell(c.tmp, "echo begun")
	job.Reaches = []string{l.Addr().String()}
	if out, code := c.run(t, job); code != 1 || !strings.HasPrefix(out, "there is no room for this program") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	time.AfterFunc(200*time.Millisecond, func() { l.Close() })
	if out, code := c.run(t, job); code != 0 || out != "begun\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// What is to be brought back is the program's to leave, and to spoil. Whoever expects it sees that it is not there.
func TestWhatCannotBeBroughtBackIsTheProgramsDoing(t *testing.T) {
	for script, want := range map[string]int{"cd ..; mv home gone; echo x > home": 1, "cd ..; mv home gone": 0} {
		t.Run(script, func(t *testing.T) {
			c := newContainer(t)
			home := filepath.Join(c.tmp, "home")
			if err := os.Mkdir(home, 0o755); err != nil {
				t.Fatal(err)
			}
			job := shell(home, script)
			job.Returns = 1 << 20
			if out, code := c.run(t, job); code != want || (code == 1) != strings.Contains(out, "cannot be brought back") {
				t.Errorf("exit code %d, want %d: %q", code, want, out)
			}
		})
	}
}

func TestAContainerIsOneJobsUntilItHasForgottenIt(t *testing.T) {
	key := NewKey()
	s := &server{}
	say := func(want byte) {
		t.Helper()
		if answer, ok := s.knows(key); answer != want || !ok {
			t.Errorf("it answers %q, want %q", answer, want)
		}
	}
	say(heard)
	say(busy)
	if answer, ok := s.knows(NewKey()); answer != 0 || ok {
		t.Errorf("it answers %q to a stranger", answer)
	}
	s.now(true, time.Now())
	say(busy)
	s.now(true, time.Now().Add(-2*forgetLimit))
	say(stuck)
	s.now(false, time.Time{})
	say(heard)
}
