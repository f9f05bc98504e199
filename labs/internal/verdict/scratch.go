package verdict

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/internal/process"
)

// scratchPrefix and digits are the name of a scratch folder. It has to be nobody else's: a checkout may be /tmp/operator-lab-2.
const scratchPrefix = "operator-lab-run-"

// newScratch makes a folder outside the checkout: learner programs run as another user, who may not be able to enter the home folder
// that the checkout is in. They can pass through it, not list it. The folder is locked until remove: a process id says nothing to a
// container that shares the folder of temporary files but not the processes.
func newScratch() (dir string, remove func(), err error) {
	if err := doctor.Problem([]doctor.Finding{doctor.TemporaryFolder()}); err != nil {
		return "", func() {}, err
	}
	for {
		dir, err := os.MkdirTemp("", scratchPrefix)
		if err != nil {
			return "", func() {}, fmt.Errorf("make scratch folder: %w", err)
		}
		lock := folderLock(dir)
		if err = lock.Lock(); err == nil {
			err = os.Chmod(dir, 0o711)
		}
		if err == nil {
			return dir, func() { _ = errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
		}
		_ = errors.Join(os.RemoveAll(dir), lock.Close())
		if !errors.Is(err, fs.ErrNotExist) { // else [sweepScratch] of another run came first
			return "", func() {}, fmt.Errorf("make scratch folder: %w", err)
		}
	}
}

// folderLock locks the folder itself.
func folderLock(dir string) *flock.Flock { return flock.New(dir, flock.SetFlag(os.O_RDONLY)) }

// sweepScratch removes what runs of this user left that were killed.
func sweepScratch() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"[0-9]*")) // the pattern is well formed
	for _, dir := range left {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !process.Ours(info) {
			continue
		}
		lock := folderLock(dir)
		if free, err := lock.TryLock(); err == nil && free {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
