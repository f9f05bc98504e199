package verdict

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/internal/process"
)

const scratchPrefix = "operator-lab-"

// newScratch makes a folder outside the checkout: learner programs run as an unprivileged user, who may
// not be able to enter the home folder that the checkout is in. They can pass through it, not list it.
func newScratch() (string, error) {
	if err := doctor.Problem([]doctor.Finding{doctor.TemporaryFolder()}); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", scratchPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("make scratch folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("open scratch folder: %w", err)
	}
	return dir, nil
}

// sweepScratch removes what runs of this user left that were killed.
func sweepScratch() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), scratchPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !process.Ours(info) {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
			continue
		}
		_ = os.RemoveAll(dir)
	}
}
