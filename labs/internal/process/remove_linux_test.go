package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/labs/internal/process"
)

// levels are more than this process may have files open.
const levels, files = 1000, 100

// A learner's program may leave folders in folders, deeper than paths go.
func TestADeepFolderIsRemoved(t *testing.T) {
	const variable = "DEEP_FOLDER"
	if dir := os.Getenv(variable); dir != "" {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}); err != nil {
			t.Fatal(err)
		}
		if err := process.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		return
	}
	home := t.TempDir()
	dir, name := filepath.Join(home, "left"), strings.Repeat("x", 250)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		above := at
		at, err = unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(above)
	}
	_ = unix.Close(at)
	remove := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestADeepFolderIsRemoved$")
	remove.Env = append(os.Environ(), variable+"="+dir)
	if out, err := remove.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
