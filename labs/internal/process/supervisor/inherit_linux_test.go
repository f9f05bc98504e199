package supervisor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// inherited is what a script prints under the supervisor, which has a terminal, and as file descriptor 4 a file of the starter's.
// Where that is possible it runs as somebody else.
func inherited(t *testing.T, script string) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	var flags []string
	if os.Geteuid() == 0 {
		flags = []string{"-uid", strconv.Itoa(supervisor.NewUser())}
	}
	cmd := exec.CommandContext(t.Context(), binary, append(flags, "sh", "-c", script)...)
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{read, file}
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer terminal.Close()
	cmd.Stdin, cmd.SysProcAttr = terminal, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(said))
}

// A kernel may let whoever has a terminal type into it, such as a command for the shell of root.
func TestAProgramHasNoTerminal(t *testing.T) {
	if got := inherited(t, `(: </dev/tty) 2>/dev/null && echo opened || echo none`); got != "none" {
		t.Errorf("the terminal of whoever starts the supervisor is %q", got)
	}
}

func TestAProgramInheritsNoFile(t *testing.T) {
	if got := inherited(t, `(cat <&4) 2>/dev/null; true`); got != "" {
		t.Errorf("a file of whoever starts the supervisor: %q", got)
	}
}

func TestAProgramInheritsNoKeys(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: the program runs as its starter, whose keys are its own")
	}
	runtime.LockOSThread() // never unlocked: its keys end with it
	if _, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 {
		t.Skip("no keys here:", errno)
	}
	if _, err := unix.AddKey("user", "of-the-starter", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		t.Skip("no keys here:", err)
	}
	if got := inherited(t, `grep of-the-starter /proc/keys; true`); got != "" {
		t.Errorf("a key of whoever starts the supervisor: %q", got)
	}
}

func TestAProgramBecomesNobodyElse(t *testing.T) {
	if got := inherited(t, `grep NoNewPrivs /proc/self/status`); got != "NoNewPrivs:\t1" {
		t.Errorf("set-uid programs work: %q", got)
	}
}
