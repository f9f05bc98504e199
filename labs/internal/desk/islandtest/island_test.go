//go:build linux

package islandtest

import (
	"context"
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
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/labs/internal/desk"
)

// islandVariable makes this test program another one: it moves to an island and runs a command there.
const islandVariable = "LAB_ISLAND"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(islandVariable); ok {
		os.Exit(settle(text, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// island is a network of its own, with one bridge: what is sent to Server there comes out at Server here.
type island struct {
	// Server is the address of the room's server, which is the same on both sides.
	Server string
	// Bridge is a socket in the file system, of which network namespaces know nothing.
	Bridge string
	// Modules is this machine's module cache, in whose place there is the folder Empty: the Go command compiles again
	// what lies elsewhere, whatever its build cache has.
	Modules, Empty string
}

// newIsland builds the bridge to the server.
func newIsland(t *testing.T, server, modules string) island {
	t.Helper()
	dir := t.TempDir()
	i := island{Server: server, Bridge: filepath.Join(dir, "bridge"), Modules: modules, Empty: filepath.Join(dir, "modules")}
	if err := os.Mkdir(i.Empty, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", i.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go carry(listener, "tcp", server)
	return i
}

// carry connects whoever comes to the listener with that address, until the listener is closed.
func carry(listener net.Listener, network, address string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
			if err != nil {
				return
			}
			defer far.Close()
			go func() {
				_, _ = io.Copy(far, near)
				_ = far.(interface{ CloseWrite() error }).CloseWrite()
			}()
			_, _ = io.Copy(near, far)
		}()
	}
}

// seat makes a command one that runs on the island.
func (i island) seat(cmd *exec.Cmd) {
	text, err := json.Marshal(i)
	if err != nil {
		cmd.Err = err
		return
	}
	cmd.Args = append([]string{"island", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(cmd.Env, islandVariable+"="+string(text))
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
}

// The commands that the island has itself.
const (
	dialCommand   = "dial"   // ADDRESS
	courseCommand = "course" // URL HOME
)

// settle makes the namespace that this program was started in an island, and runs the command there. It returns its exit
// code.
func settle(text string, command []string) int {
	if err := os.Unsetenv(islandVariable); err != nil {
		return lost(err)
	}
	var i island
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return lost(err)
	}
	if err := errors.Join(loopbackUp(), unix.Mount(i.Empty, i.Modules, "", unix.MS_BIND, "")); err != nil {
		return lost(err)
	}
	ctx := context.Background()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", i.Server)
	if err != nil {
		return lost(err)
	}
	go carry(listener, "unix", i.Bridge)
	switch command[0] {
	case dialCommand:
		err = dial(ctx, command[1])
	case courseCommand:
		err = (&desk.Desk{Home: command[2]}).FetchCourse(ctx, command[1])
	default:
		return follow(command)
	}
	if err != nil {
		return lost(err)
	}
	return 0
}

// lost says what is wrong with the island, or could not be done there.
func lost(err error) int {
	fmt.Fprintln(os.Stderr, "island:", err)
	return 1
}

// follow runs the command to its end. An interrupt is for the command, which cleans up; the bridge stays meanwhile.
func follow(command []string) int {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return lost(err)
	}
	return cmd.ProcessState.ExitCode()
}

// loopbackUp switches on the one network interface that a new namespace has.
func loopbackUp() error {
	all, err := net.Interfaces()
	if err != nil || len(all) != 1 {
		return fmt.Errorf("it has the network interfaces %v, and should have one: %w", all, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// dialTimeout is for an answer on the same machine.
const dialTimeout = 5 * time.Second

func dial(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// on runs one of the island's own commands.
func (i island) on(t *testing.T, command ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Path, cmd.Err = command[0], nil // it is no program
	i.seat(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// requireAlone wants the island to reach the room's server, and nothing else that this machine reaches.
func (i island) requireAlone(t *testing.T, others ...string) {
	t.Helper()
	if err := i.on(t, dialCommand, i.Server); err != nil {
		t.Errorf("it does not reach the room's server: %v", err)
	}
	for _, other := range others {
		if err := dial(t.Context(), other); err != nil {
			t.Errorf("nobody listens at %s, which the island should not reach: %v", other, err)
		}
		if err := i.on(t, dialCommand, other); err == nil {
			t.Errorf("it reaches %s", other)
		}
	}
}

// A test on an island that is none would prove nothing.
func TestAnIslandReachesItsServerAlone(t *testing.T) {
	server, bystander, modules := listen(t), listen(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(modules, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	i := newIsland(t, server, modules)
	i.requireAlone(t, bystander)
	look := exec.CommandContext(t.Context(), "ls", modules)
	i.seat(look)
	if out, err := look.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("the module cache there is not empty: %q, %v", out, err)
	}
	stop := exec.CommandContext(t.Context(), "sh", "-c", "exit 7")
	i.seat(stop)
	if err := stop.Run(); stop.ProcessState == nil || stop.ProcessState.ExitCode() != 7 {
		t.Errorf("exit code 7 becomes %v", err)
	}
}

// listen is the address of somebody who listens on this machine and hangs up on whoever comes.
func listen(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return listener.Addr().String()
}
