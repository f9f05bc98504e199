package verdict

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// keptRuns is how many runs keep their artifacts: an evening of `lab watch` makes one on every save, of up to ten megabytes.
const keptRuns = 100

// runID is the name of a run's folder of artifacts. Sorted by name they are in the order of time.
var runID = regexp.MustCompile(`^\d{8}-\d{6}-[A-Z2-7]{4}$`)

func newRunID(started time.Time) string {
	return started.UTC().Format("20060102-150405") + "-" + rand.Text()[:4]
}

// Adopt keeps the results of one run that happened elsewhere where those of runs of this machine are.
func Adopt(state string, results []*Result) error {
	if run := results[0].Run; !runID.MatchString(run) {
		return fmt.Errorf("keep the result: %q is no run", run)
	}
	return keep(state, results)
}

// makeArtifacts makes the folder for a run's evidence, and removes those of the oldest runs.
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
