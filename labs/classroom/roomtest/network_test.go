//go:build linux

package roomtest

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

	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/clusters/embedded"
)

// networkVariable makes this test program another one: it runs a command in an isolated network.
const networkVariable = "LAB_ISOLATED_NETWORK"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(networkVariable); ok {
		os.Exit(runIsolated(text, os.Args[1:]))
	}
	if len(os.Args) == 3 && os.Args[1] == embedded.SuperviseCommand { // the parent of a control plane's processes
		if err := embedded.Supervise(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// isolated is a network namespace in which only the room's server can be reached, at its own address. A Unix socket
// leads there: network namespaces do not separate the file system.
type isolated struct {
	// Server is the address of the room's server.
	Server string
	// Socket leads to the server.
	Socket string
	// Modules is this machine's module cache. The folder Empty is mounted there: with another path, the Go command would
	// compile all modules again.
	Modules, Empty string
}

func isolate(t *testing.T, server, modules string) isolated {
	t.Helper()
	dir := t.TempDir()
	n := isolated{Server: server, Socket: filepath.Join(dir, "socket"), Modules: modules, Empty: filepath.Join(dir, "modules")}
	if err := os.Mkdir(n.Empty, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", n.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go forward(listener, "tcp", server)
	return n
}

// forward connects each client of the listener with that address, until the listener is closed.
func forward(listener net.Listener, network, address string) {
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

// wrap makes a command run in the network.
func (n isolated) wrap(cmd *exec.Cmd) {
	text, err := json.Marshal(n)
	if err != nil {
		cmd.Err = err
		return
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Args = append([]string{"isolated", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(cmd.Env, networkVariable+"="+string(text))
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
}

// runIsolated prepares the namespaces that this program was started in, and runs the command there. It returns the
// command's exit code.
func runIsolated(text string, command []string) int {
	code, err := func() (int, error) {
		var n isolated
		err := errors.Join(os.Unsetenv(networkVariable), json.Unmarshal([]byte(text), &n))
		if err == nil {
			err = errors.Join(loopbackUp(), unix.Mount(n.Empty, n.Modules, "", unix.MS_BIND, ""))
		}
		if err != nil {
			return 1, err
		}
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", n.Server)
		if err != nil {
			return 1, err
		}
		go forward(listener, "unix", n.Socket)
		// An interrupt is for the command, which cleans up and needs the network for it.
		signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
		if cmd.ProcessState == nil {
			return 1, err
		}
		return cmd.ProcessState.ExitCode(), nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "isolated network:", err)
	}
	return code
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

// dial opens a connection, in the network if there is one.
func dial(t *testing.T, n *isolated, address string) error {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "timeout", "5", "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port)
	if n != nil {
		n.wrap(cmd)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// requireIsolated wants the network to reach the room's server, and nothing else that this machine reaches.
func (n isolated) requireIsolated(t *testing.T, others ...string) {
	t.Helper()
	if err := dial(t, &n, n.Server); err != nil {
		t.Errorf("it does not reach the room's server: %v", err)
	}
	for _, other := range others {
		if err := dial(t, nil, other); err != nil {
			t.Errorf("nobody listens at %s, which the network should not reach: %v", other, err)
		}
		if err := dial(t, &n, other); err == nil {
			t.Errorf("it reaches %s", other)
		}
	}
}

// A network that is not isolated would prove nothing about a room without internet.
func TestIsolatedNetworkReachesTheServerOnly(t *testing.T) {
	modules := t.TempDir()
	if err := os.WriteFile(filepath.Join(modules, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := isolate(t, listen(t), modules)
	n.requireIsolated(t, listen(t))
	list := exec.CommandContext(t.Context(), "ls", modules)
	n.wrap(list)
	if out, err := list.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("the module cache there is not empty: %q, %v", out, err)
	}
	stop := exec.CommandContext(t.Context(), "sh", "-c", "exit 7")
	n.wrap(stop)
	if err := stop.Run(); stop.ProcessState == nil || stop.ProcessState.ExitCode() != 7 {
		t.Errorf("exit code 7 becomes %v", err)
	}
}

// listen is the address of a server on this machine that closes every connection.
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
