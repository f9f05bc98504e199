package verdict

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/internal/process"
)

// keptRuns is how many runs keep their artifacts: an evening of `lab watch` makes one on every save, of up to ten megabytes.
const keptRuns = 100

// runID is the name of a run's folder of artifacts. Sorted by name, the oldest run is the first.
var runID = regexp.MustCompile(`^\d{8}-\d{6}-[A-Z2-7]{4}$`)

// NewRunID names a run that begins at a time.
func NewRunID(started time.Time) string {
	return started.UTC().Format("20060102-150405") + "-" + rand.Text()[:4]
}

// makeArtifacts makes the folder for a run's artifacts, and removes those of the oldest runs.
func makeArtifacts(state, id string) (string, error) {
	all := filepath.Join(state, "artifacts")
	dir := filepath.Join(all, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return dir, fmt.Errorf("make artifacts folder: %w", err)
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		return dir, fmt.Errorf("look at old artifacts: %w", err)
	}
	runs := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !runID.MatchString(e.Name()) })
	for _, old := range runs[:max(0, len(runs)-keptRuns)] {
		_ = os.RemoveAll(filepath.Join(all, old.Name())) // the next run tries again
	}
	return dir, nil
}

// scratchPrefix begins the name of a scratch folder, and digits follow. [sweepScratch] removes folders with such a name, so a
// checkout must not match it, such as /tmp/operator-lab-2.
const scratchPrefix = "operator-lab-run-"

// newScratch makes a folder outside the checkout. Learner programs run as another user, who may not be able to enter the home folder
// that the checkout is in; they can pass through the scratch folder, not list it. It is locked until remove is called. A lock also
// works between containers that share the folder of temporary files but not the processes.
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

// sweepScratch removes the scratch folders that killed runs of this user left.
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
