//go:build unix

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user id that owns nothing.
const nobody = 65534

func makePipe(t *testing.T, name string) {
	t.Helper()
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
}

// asNobody runs the calling test again as a user whom permissions bind, if it
// is root who runs it, and says whether it did.
func asNobody(t *testing.T) (done bool) {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "nobody-") //nolint:usetesting // t.TempDir is below a private folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	return true
}
