package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// deadline is how long anything here may take that does not come.
const deadline = 10 * time.Second

// This test is its own shim, and its own container engine, whose containers are plain processes: what is tried here is
// what goes over the socket. Package sandboxtest tries real containers.
func TestMain(m *testing.M) {
	switch args := os.Args; {
	case len(args) == 5 && args[1] == "send":
		code, err := Send(args[2], args[3], args[4], os.NewFile(3, "parent"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	case len(args) == 4 && args[1] == "serve":
		fmt.Fprintln(os.Stderr, Serve(args[2], args[3]))
		os.Exit(1)
	case len(args) == 5 && args[1] == "run" && args[3] == "program":
		code, err := Run(args[2], args[3], args[4], os.NewFile(3, "parent"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	case len(args) == 2 && args[1] == "flood":
		flood()
	case len(args) == 3 && args[1] == "try":
		if err := attempts[args[2]](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(args) == 3 && args[1] == "inside":
		if err := Inside(args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(args) > 3 && (args[1] == "run" || args[1] == "rm"):
		os.Exit(fakeEngine(args))
	}
	os.Exit(m.Run())
}

func fakeEngine(args []string) int {
	if os.Getenv("NO_ENGINE") != "" {
		fmt.Fprintln(os.Stderr, "the engine is out of order")
		return 125
	}
	if log := os.Getenv("REMOVED"); log != "" && args[1] == "rm" {
		if os.WriteFile(log, []byte(args[len(args)-1]), 0o600) != nil {
			return 125
		}
	}
	for _, arg := range args {
		if source, ok := strings.CutSuffix(arg, ",target="+socketPath+",readonly"); ok {
			cmd := exec.Command(os.Args[0], "inside", strings.TrimPrefix(source, "type=bind,source="))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if cmd.Start() == nil {
				return 0
			}
		}
	}
	return 125
}

// Docker starts containers without limits, with a warning, where the kernel cannot keep them.
func TestAnEngineThatKeepsNoLimitsIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho 'false true'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if err := (&Container{Engine: "docker"}).Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot limit the memory") {
		t.Errorf("it is taken: %v", err)
	}
}

// runner has the fake engine's containers.
func runner(t *testing.T) process.Runner {
	t.Helper()
	scratch, err := os.MkdirTemp("", "sandbox-") //nolint:usetesting // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scratch) })
	c := &Container{Engine: os.Args[0], Shim: os.Args[0], Owner: "test", Toolchain: Toolchain{"/", "/", "/"}}
	launcher, err := c.Launcher(filepath.Join(scratch, "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	launcher.Scratch = scratch
	return process.Runner{Launcher: launcher}
}

// shell is a job that runs a script in dir. A container has no PATH for programs.
func shell(dir, script string) process.Job {
	return process.Job{Args: []string{"/bin/sh", "-c", "PATH=/usr/bin:/bin; " + script}, Dir: dir, Writes: dir, Env: []string{"GREETING=hello"}}
}

func command(t *testing.T, ctx context.Context, job process.Job) (*exec.Cmd, *bytes.Buffer) { //nolint:revive // the test comes first
	t.Helper()
	cmd, err := runner(t).Program(ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = deadline
	return cmd, &out
}

func TestOutputAndExitCodeAreThoseOfTheProgram(t *testing.T) {
	cmd, out := command(t, t.Context(), shell(t.TempDir(), "echo $GREETING; echo world >&2; exit 7"))
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 7 || out.String() != "hello\nworld\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

func TestAProgramThatLeavesTooMuchFails(t *testing.T) {
	job := shell(t.TempDir(), "head -c 5000 /dev/zero > file")
	job.Returns = 1000
	cmd, out := command(t, t.Context(), job)
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "left more than") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestAProgramThatPrintsWithoutEndIsEnded(t *testing.T) {
	cmd, err := runner(t).Program(t.Context(), shell(t.TempDir(), "cat /dev/zero"))
	if err != nil {
		t.Fatal(err)
	}
	var out counter
	cmd.Stdout = &out
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != process.TooMuchOutput || out != process.OutputLimit || process.Exceeded(code) == "" {
		t.Errorf("exit code %d after %d bytes", code, out)
	}
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestTheProgramIsAskedToEnd(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	job := shell(dir, "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	cmd, err := runner(t).Program(ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Fatal("it does not start")
	}
	ready := make([]byte, 6)
	if _, err := io.ReadFull(stdout, ready); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(stdout)
	_ = cmd.Wait()
	if string(rest) != "bye\n" || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it said %q and ended with %d", rest, cmd.ProcessState.ExitCode())
	}
}

// started is a program that runs, with the pid of a process that it has started in another session.
func started(t *testing.T, ctx context.Context) (*exec.Cmd, int) { //nolint:revive // the test comes first
	t.Helper()
	dir := t.TempDir()
	cmd, _ := command(t, ctx, shell(dir, "setsid sh -c 'echo $$ > new; mv new pid; exec sleep 1000' & wait"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	gomega.NewWithT(t).Eventually(func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err == nil
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "the program's process")
	return cmd, pid
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestNothingIsLeftWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, pid := started(t, ctx)
	cancel()
	_ = cmd.Wait()
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
	}
	if code := cmd.ProcessState.ExitCode(); code != supervisor.CannotRun {
		t.Errorf("exit code %d", code)
	}
}

// The first process of a container may be kept from its end. That is not for the next learner to suffer from.
func TestTheContainerOfAProgramThatWasEndedIsRemoved(t *testing.T) {
	for what, tt := range map[string]struct {
		script string
		ended  bool // when it says that it has begun
		want   string
	}{
		"ended by us":     {"echo begun; sleep 1000", true, "operator-lab-sandbox-"},
		"kept from it":    {"kill -STOP $PPID; echo begun; sleep 1000", true, "operator-lab-sandbox-"},
		"ended by limits": {"cat /dev/zero", false, "operator-lab-sandbox-"},
		"ended by itself": {"exit 1", false, ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir, removed := t.TempDir(), filepath.Join(t.TempDir(), "removed")
			t.Setenv("REMOVED", removed)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd, err := runner(t).Program(ctx, shell(dir, "echo $PPID > first; "+tt.script))
			if err != nil {
				t.Fatal(err)
			}
			cmd.WaitDelay = goneLimit + 2*time.Second // as for a manager (StopTimeout of package env)
			if tt.ended {
				cmd.Stdout = &onFirst{do: cancel}
			}
			_ = cmd.Run()
			if name, _ := os.ReadFile(removed); tt.want == "" && name != nil || !strings.HasPrefix(string(name), tt.want) {
				t.Errorf("%q was removed", name)
			}
			if first, err := strconv.Atoi(strings.TrimSpace(contents(t, dir)["first"])); err == nil && tt.ended {
				_ = syscall.Kill(first, syscall.SIGCONT)
			}
		})
	}
}

func TestNothingIsLeftWhenOurSideIsKilled(t *testing.T) {
	cmd, pid := started(t, t.Context())
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gomega.NewWithT(t).Eventually(func() bool { return gone(pid) }).WithTimeout(deadline).Should(gomega.BeTrue(), "the end of the program's process")
}

func TestAContainerThatCannotBeStartedIsNotTheProgramsFault(t *testing.T) {
	t.Setenv("NO_ENGINE", "1")
	cmd, out := command(t, t.Context(), shell(t.TempDir(), "exit 0"))
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != process.NotStarted || !strings.Contains(out.String(), "the engine is out of order") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestAProgramCannotPretendThatItNeverStarted(t *testing.T) {
	for _, code := range []string{"123", "122"} {
		cmd, _ := command(t, t.Context(), shell(t.TempDir(), "exit "+code))
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != 1 {
			t.Errorf("exit code %d of a program that ends with %s", got, code)
		}
	}
}

// listening is a mux that answers at a socket.
func listening(t *testing.T, reaches ...string) (*mux, string) {
	t.Helper()
	socket := filepath.Join(runner(t).Launcher.Scratch, "s")
	l, err := listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := newMux(reaches)
	go b.answer(l.Accept)
	return b, socket
}

// echo listens on loopback and says everything back after its own name.
func echo(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, name+" ")
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// exchange says hello at an address and returns the answer.
func exchange(t *testing.T, address string, bytes int) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(deadline))
	_, _ = io.WriteString(conn, "hello")
	answer := make([]byte, bytes)
	n, _ := io.ReadFull(conn, answer)
	return string(answer[:n])
}

// The kernel ends the largest program of a machine that has no memory left, and that may be anybody's.
func TestOnlyItsOwnLimitIsAProgramsFault(t *testing.T) {
	before := events{refused: 1, killed: 1, full: 1}
	for name, tc := range map[string]struct {
		now   events
		ended bool
		code  int
		short bool
	}{
		"nothing happened":                 {now: before},
		"tasks were refused":               {now: events{refused: 2, killed: 1, full: 1}, code: supervisor.TooManyProcesses},
		"it was full, and cleaned up":      {now: events{refused: 1, killed: 1, full: 2}},
		"it was full, and something ended": {now: events{refused: 1, killed: 2, full: 2}, code: supervisor.TooMuchMemory},
		"the machine was full":             {now: events{refused: 1, killed: 2, full: 1}, short: true},
		"we ended it":                      {now: before, ended: true, code: supervisor.TooMuchMemory},
		"we ended it on a full machine":    {now: events{refused: 1, killed: 2, full: 1}, ended: true, code: supervisor.TooMuchMemory},
	} {
		if code, err := tc.now.exceeded(before, tc.ended); code != tc.code || (err != nil) != tc.short {
			t.Errorf("%s: %d, %v", name, code, err)
		}
	}
}

func TestTheProgramReachesItsAddresses(t *testing.T) {
	reaches := []string{echo(t, "api"), echo(t, "registry")}
	_, socket := listening(t, reaches...)
	for place, answer := range []string{"api hello", "registry hello"} {
		inside := free(t)
		if err := extend(t.Context(), overSocket(socket), inside, byte(place)); err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, inside, len(answer)); got != answer {
			t.Errorf("the answer is %q", got)
		}
	}
}

// A node has so many files for each user, and no more. When others have given theirs back, a program goes on.
func TestTheWayOutOutlastsAWantOfFiles(t *testing.T) {
	_, socket := listening(t, echo(t, "api"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go passOn(&wanting{Listener: l, times: 3}, overSocket(socket), 0)
	if got, want := exchange(t, l.Addr().String(), len("api hello")), "api hello"; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
}

// wanting is a listener that has no file for so many times.
type wanting struct {
	net.Listener
	times int
}

func (w *wanting) Accept() (net.Conn, error) {
	if w.times--; w.times >= 0 {
		return nil, syscall.EMFILE
	}
	return w.Listener.Accept()
}

func TestAProgramThatMayReachNothingReachesNothing(t *testing.T) {
	_, socket := listening(t)
	conn, err := overSocket(socket)(roleReach, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(deadline))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("it reads %d bytes, %v", n, err)
	}
}

func TestWhatTheProgramServesIsReachedFromHere(t *testing.T) {
	inside, here := echo(t, "metrics"), free(t)
	b, socket := listening(t)
	go offer(overSocket(socket), inside)
	go b.serve(t.Context(), here)
	gomega.NewWithT(t).Eventually(func() bool {
		conn, err := net.Dial("tcp", here)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "a listener")
	for range 3 {
		if got := exchange(t, here, 13); got != "metrics hello" {
			t.Errorf("the answer is %q", got)
		}
	}
}

// A program sees the socket, too. It is not to take the place of the first process.
func TestOnlyTheFirstIsInControl(t *testing.T) {
	b, socket := listening(t)
	if _, err := overSocket(socket)(roleControl); err != nil {
		t.Fatal(err)
	}
	<-b.control
	second, err := overSocket(socket)(roleControl)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.SetDeadline(time.Now().Add(deadline))
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the second call is not refused: %v", err)
	}
}

// A job can be over before all of its order was sent on. Who closes the connection then cuts off the sender.
func TestAContainerListensUntilTheOtherSideHangsUp(t *testing.T) {
	control, theirs := net.Pipe()
	output, printed := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, output) }()
	done := make(chan error, 1)
	go func() {
		done <- work(t.Context(), func(role ...byte) (net.Conn, error) {
			if role[0] == roleControl {
				return theirs, nil
			}
			return printed, nil
		})
	}()
	if err := pack(control, order{}); err != nil { // an order without a program
		t.Fatal(err)
	}
	var o outcome
	answer, err := unpack(control, &o)
	if err == nil {
		err = answer.into(0)
	}
	if err != nil || o.Failed == "" {
		t.Fatalf("%+v, %v", o, err)
	}
	go func() { _, _ = io.Copy(io.Discard, control) }()
	if _, err := control.Write([]byte("the rest")); err != nil {
		t.Errorf("the container has hung up: %v", err)
	}
	control.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
