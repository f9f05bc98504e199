package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/trace"
)

// The Ginkgo labels of a spec.
const (
	// LabLabel begins the label that carries a lab's number.
	LabLabel = "lab:"
	// CheckLabel begins the label that carries a check's id.
	CheckLabel = "check:"
)

// The names of Ginkgo's report entries.
const (
	// FindingEntry carries a finding as JSON.
	FindingEntry = "finding"
	// EvidenceEntry carries a failed check's evidence, as the JSON of a list of [finding.Evidence].
	EvidenceEntry = "evidence"
)

// The files among a run's artifacts.
const (
	// OutcomesFile has Ginkgo's report of each check as soon as the check has ended, a line of JSON each.
	OutcomesFile = "outcomes.jsonl"
	// ManagerLogs is the pattern of the files that hold what the managers printed.
	ManagerLogs = "manager*.log"
	// StatusFile has what the checks of all processes tell each other, a line each.
	StatusFile = "status"
)

// The causes that stand for the whole run, or come from what many checks share.
const (
	// CauseBlocked is the cause of a check that was given up because another one had failed. What it saw is
	// that check's id.
	CauseBlocked = "blocked"
	// CauseManagerExited is the cause when the learner's manager ended by itself, or could not be started.
	CauseManagerExited = "manager-exited"
	// CauseManagerSilent is the cause when the manager runs and asks the API server for nothing.
	CauseManagerSilent = "manager-silent"
	// CausePanicked is the cause when the manager's code panicked over the object. controller-runtime
	// turns that into an error, so that the manager goes on running.
	CausePanicked = "panicked"
	// CauseNoManifest is the cause when config/crd/bases holds no definition of Memcached.
	CauseNoManifest = "no-manifest"
	// CauseRefused is the cause when the API server does not take the definition.
	CauseRefused = "refused"
)

// OneProcessFile is made in the artifacts of a run when a manager cannot run beside those of other processes.
const OneProcessFile = "one-process"

// RunsOnlyOnce says whether a run of several processes was given up because the manager cannot run several times on one
// machine, and forgets what that run has written: its checks have to be judged by one process.
func RunsOnlyOnce(artifacts string) (bool, error) {
	if err := os.Remove(filepath.Join(artifacts, OneProcessFile)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("judge with one process: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(artifacts, ManagerLogs))
	for _, file := range append(logs, filepath.Join(artifacts, StatusFile), filepath.Join(artifacts, trace.File)) {
		if removed := os.Remove(file); removed != nil && !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	if err != nil {
		return false, fmt.Errorf("judge with one process: %w", err)
	}
	return true, nil
}
