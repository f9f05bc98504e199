package verdict

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// keptRuns is how many runs keep their artifacts: an evening of `lab watch` makes one on every save, each of
// a third of a megabyte, and ten of a manager that writes without end.
const keptRuns = 100

// runID is what the artifacts folder of a run is called. Sorted by name they are in the order of time.
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

// makeArtifacts makes the folder for a run's evidence, and removes those of the oldest runs. What cannot be
// removed stays: it is in nobody's way.
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
	var runs []string
	for _, entry := range entries {
		if runID.MatchString(entry.Name()) {
			runs = append(runs, entry.Name())
		}
	}
	for _, old := range runs[:max(0, len(runs)-keptRuns)] {
		_ = os.RemoveAll(filepath.Join(all, old))
	}
	return dir, nil
}
