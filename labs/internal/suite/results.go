package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/example/operator-lab/labs/internal/finding"
)

// ResultsFile is the file among a run's artifacts with one line for each check that has ended. Each process of the suite adds to it,
// and reads which checks of the others have failed. Package verdict makes the verdict from it.
const ResultsFile = "results.jsonl"

// State is how a check ended.
type State string

// The states of a check that has ended.
const (
	Passed State = "passed"
	Failed State = "failed"
	// Blocked: it was given up, or not begun, because another check has failed.
	Blocked State = "blocked"
	// Broken: the suite could not judge it, or anything.
	Broken State = "broken"
	// Restart: the manager cannot run several times on one machine, so one process has to judge all checks anew.
	Restart State = "restart"
)

// Result is one line of the [ResultsFile].
type Result struct {
	// Run is the id of one start of the suite.
	Run string `json:"run"`
	// Check is the id of the check, "" for the suite as a whole.
	Check string `json:"check,omitempty"`
	State State  `json:"state"`
	// Finding is why a check failed.
	Finding *finding.Finding `json:"finding,omitempty"`
	// Evidence explains a failed check, the most telling first.
	Evidence []finding.Evidence `json:"evidence,omitempty"`
	// BlockedBy is the check that has failed.
	BlockedBy string `json:"blockedBy,omitempty"`
	// Load is the machine's load average when the time of a failed check ran out, 0 if the machine was not busy.
	Load float64 `json:"load,omitempty"`
	// Defect is what broke.
	Defect string    `json:"defect,omitempty"`
	Began  time.Time `json:"began,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
}

// Append adds a result to a file. Lines of several processes stay apart.
func Append(path string, r Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(line, '\n')) // in one write
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// ReadResults reads the results in a file that others may add to. It leaves out a line that is not whole yet. A file that does not
// exist has none: no check has ended.
func ReadResults(path string) (all []Result, err error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read results: %w", err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for lines := json.NewDecoder(bytes.NewReader(data)); lines.More(); {
		var result Result
		if err := lines.Decode(&result); err != nil {
			return all, fmt.Errorf("read results: %w", err)
		}
		all = append(all, result)
	}
	return all, nil
}

// The Ginkgo labels of a spec.
const (
	// LabLabel begins the label that carries a lab's number.
	LabLabel = "lab:"
	// CheckLabel begins the label that carries a check's id.
	CheckLabel = "check:"
)

// ManagerLogs is the pattern of the artifacts that hold what the managers printed.
const ManagerLogs = "manager*.log"

// The causes that stand for the whole run, or come from what many checks share.
const (
	// CauseBlocked is the cause of a check that was given up because another one had failed. What it saw is
	// that check's id.
	CauseBlocked = "blocked"
	// CauseManagerExited is the cause when the learner's manager ended by itself, or could not be started.
	CauseManagerExited = "manager-exited"
	// CauseManagerSilent is the cause when the manager runs and asks the API server for nothing.
	CauseManagerSilent = "manager-silent"
	// CausePanicked is the cause when a reconciliation of the object panicked. controller-runtime
	// turns that into an error, so that the manager goes on running.
	CausePanicked = "panicked"
	// CauseNoManifest is the cause when config/crd/bases holds no definition of Memcached.
	CauseNoManifest = "no-manifest"
	// CauseRefused is the cause when the API server does not take the definition.
	CauseRefused = "refused"
)
