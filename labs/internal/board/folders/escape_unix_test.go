//go:build unix

package folders_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a learner puts into their folder leads nowhere else, and keeps nobody waiting.
func TestNothingInAFolderLeadsOutOfIt(t *testing.T) {
	s := newShare(t)
	s.write("victim/results/lab-1.json", s.result(1, "v-1"))
	s.write("mallory/results/lab-5.json", s.result(5, "m-1"))
	outside := filepath.Join(t.TempDir(), "lab-1.json")
	if err := os.WriteFile(outside, []byte(s.result(1, "outside")), 0o600); err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(s.dir, "mallory", "results")
	for name, target := range map[string]string{
		"lab-1.json": "../../victim/results/lab-1.json", "lab-2.json": outside, "lab-3.json": "/dev/zero",
	} {
		if err := os.Symlink(target, filepath.Join(results, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(results, "lab-4.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(s.dir, "linked")); err != nil {
		t.Fatal(err)
	}
	done := make(chan []string, 1)
	go func() { done <- s.scan() }()
	select {
	case got := <-done:
		if diff := cmp.Diff([]string{"mallory 5 m-1", "victim 1 v-1"}, got); diff != "" {
			t.Error(diff)
		}
		if told := strings.Join(s.lines, "\n"); !strings.Contains(told, "mallory/results/lab-4.json is left out: it is no plain file") {
			t.Errorf("complains: %s", told)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the board waits for a pipe")
	}
}
