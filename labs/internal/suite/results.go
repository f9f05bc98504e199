package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/example/operator-lab/labs/internal/finding"
)

// ResultsFile has one line for each check that has ended, among a run's artifacts. The suite's processes add to it, and read
// how the checks of the others fare; whoever runs the suite reads the verdict from it.
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
	// Restart: the manager cannot run several times on one machine, so the run does not count, and one process judges all
	// checks anew.
	Restart State = "restart"
)

// Result is one line of the [ResultsFile].
type Result struct {
	// Run is one start of the suite.
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
		_, err = f.Write(append(line, '\n')) // at once
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Reader reads the results in a file while others add to it.
type Reader struct {
	Path string
	read int
}

// Next are the results that were added since it was called last. A line that is not whole yet comes later. A file that does not exist
// has none: no check has ended.
func (r *Reader) Next() (all []Result, err error) {
	data, err := os.ReadFile(r.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read results: %w", err)
	}
	for line := range bytes.Lines(data[min(r.read, len(data)):]) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var result Result
		if err := json.Unmarshal(line, &result); err != nil {
			return all, fmt.Errorf("read results: %w", err)
		}
		r.read += len(line)
		all = append(all, result)
	}
	return all, nil
}

// ReadResults are the results in a file that count.
func ReadResults(path string) ([]Result, error) {
	all, err := (&Reader{Path: path}).Next()
	given := map[string]bool{}
	for _, r := range all {
		given[r.Run] = given[r.Run] || r.State == Restart
	}
	return slices.DeleteFunc(all, func(r Result) bool { return given[r.Run] }), err
}
