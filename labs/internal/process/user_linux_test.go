package process_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/example/operator-lab/labs/internal/process"
)

// Programs of one user may signal each other, and end with each other.
func TestAHomeHasAUserOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		if uid, err := process.UserOf(t.TempDir()); uid != -1 || err != nil {
			t.Errorf("%d, %v, want the user of this process", uid, err)
		}
		return
	}
	home, other := t.TempDir(), t.TempDir()
	var users []int
	for _, dir := range []string{home, home, other} {
		uid, err := process.UserOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, uid)
	}
	if users[0] != users[1] || users[0] == users[2] || users[0] <= process.Unprivileged {
		t.Errorf("users %d, want one for each home that nobody else is", users)
	}
}

// A supervisor that was ended itself, because it was too slow to end its program in time, leaves that behind.
func TestWhatASupervisorLeavesIsEnded(t *testing.T) {
	home := t.TempDir()
	uid, err := process.UserOf(home)
	if err != nil || uid < 0 {
		t.Skip("not root: a program runs as its starter", err)
	}
	left := exec.Command("sleep", "1000")
	left.Dir, left.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	process.EndUserOf(home)
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
	process.EndUserOf(t.TempDir()) // our own: this test goes on
}
