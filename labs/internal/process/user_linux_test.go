package process_test

import (
	"os"
	"testing"

	"github.com/example/operator-lab/labs/internal/process"
)

// Programs of one user may signal each other, and end with each other.
func TestUserOfEachHomeIsItsOwn(t *testing.T) {
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
