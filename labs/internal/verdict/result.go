// Package verdict runs the suite on one cluster and turns its results into a verdict: pass, fail, or environment, with the
// reason for each check that does not pass.
package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// Verdict is the answer to a run.
type Verdict string

// The three values of a verdict.
const (
	// Pass: every check holds.
	Pass Verdict = "pass"
	// Fail: the learner's code is not right yet.
	Fail Verdict = "fail"
	// Environment: the machine, the cluster or the lab itself kept the checks from judging.
	Environment Verdict = "environment"
)

// Worst is the verdict on several labs: environment if any is, else fail if any is, else pass.
func Worst(results []*Result) Verdict {
	worst := Pass
	for _, r := range results {
		switch r.Verdict {
		case Environment:
			return Environment
		case Fail:
			worst = Fail
		}
	}
	return worst
}

// State is the answer to one check.
type State string

// The states of a check.
const (
	Passed State = "pass"
	Failed State = "fail"
	// Blocked: a check that this one requires has failed.
	Blocked State = "blocked"
	// NotChecked: this kind of cluster cannot judge it.
	NotChecked State = "not-checked"
	// NotJudged: its time ran out while this machine was busy, or the machine could not do what it needs.
	NotJudged State = "not-judged"
)

// Result is what a run found about one lab, as it stands in .lab/results/WORKSPACE/lab-N.json, see [Path]. Scripts read it; a change
// of its meaning needs another Schema.
type Result struct {
	Schema    int       `json:"schema"`
	Lab       int       `json:"lab"` // of a task of the CKA practice, minus its number; such a result is not kept in [Path]
	Verdict   Verdict   `json:"verdict"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"`
	Workspace string    `json:"workspace"`
	Run       string    `json:"run"`
	// Seed replays the run's names, sizes and ports: lab check N --seed S.
	Seed    int64   `json:"seed"`
	Cluster Cluster `json:"cluster"`
	// Build is why the learner's code could not be judged at all, nil when it could.
	Build       *Build  `json:"build,omitempty"`
	Checks      []Check `json:"checks"`
	Environment Finding `json:"environment"`
	Artifacts   string  `json:"artifacts"`
}

// Cluster says what a run was judged on.
type Cluster struct {
	Provider string `json:"provider"`
	Version  string `json:"version"`
}

// Build is a failed compilation of the learner's code.
type Build struct {
	// Output is the compiler's, with paths relative to the workspace.
	Output string `json:"output"`
}

// Check is one check of a result.
type Check struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Lab is the number of the lab that the check belongs to. The opening checks of earlier labs are judged again.
	Lab       int     `json:"lab"`
	State     State   `json:"state"`
	Cause     string  `json:"cause"`
	Seconds   float64 `json:"seconds"`
	Expected  string  `json:"expected"`
	Seen      string  `json:"seen"`
	BlockedBy string  `json:"blockedBy"`
	// Fields are the differences behind Expected and Seen, where objects were compared.
	Fields []finding.Field `json:"fields,omitempty"`
	// Evidence explains a failed check, the most telling first.
	Evidence []finding.Evidence `json:"evidence,omitempty"`
	// Load is the machine's load average when the time of the check ran out, if it is not judged for that.
	Load float64 `json:"load,omitempty"`
	// Hint is the first hint for a failed check, File and Line are where its code belongs: see [Format], which alone sets them.
	Hint string `json:"hint,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Finding is what is wrong with the machine, and the command that fixes it.
type Finding struct {
	Finding string `json:"finding"`
	Fix     string `json:"fix"`
}

const schema = 1

// step is what was judged, as make targets name it.
func (r *Result) step() string { return strings.TrimPrefix(course.Name(r.Lab), "lab ") }

// Path is where the last result of lab n for a workspace is kept below the state folder.
func Path(state, dir string, n int) string {
	return filepath.Join(state, "results", workspace.Key(dir), fmt.Sprintf("lab-%d.json", n))
}

// Plain makes all texts of the result safe for a terminal, except the paths of folders: commands look for those.
func (r *Result) Plain() {
	dir, artifacts := r.Workspace, r.Artifacts
	plain.Within(r)
	r.Workspace, r.Artifacts = dir, artifacts
}

// Write keeps the result. A reader never sees half of it.
func (r *Result) Write(state string) error {
	path := Path(state, r.Workspace, r.Lab)
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = maybe.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Read reads what [Result.Write] kept for lab n and a workspace. The error wraps [os.ErrNotExist] when there is none.
func Read(state, dir string, n int) (*Result, error) {
	path := Path(state, dir, n)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	r := &Result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read result %s: %w", path, err)
	}
	return r, nil
}

// Count is the number of checks in the given state.
func (r *Result) Count(s State) (n int) {
	for _, c := range r.Checks {
		if c.State == s {
			n++
		}
	}
	return n
}

// Event is one line of .lab/history.jsonl: a verdict.
type Event struct {
	Time      time.Time `json:"time"`
	Lab       int       `json:"lab"`
	Verdict   Verdict   `json:"verdict"`
	Seconds   float64   `json:"seconds"`
	Workspace string    `json:"workspace"`
	Run       string    `json:"run"`
	Failed    []string  `json:"failed,omitempty"`
	// NotChecked are checks that the kind of cluster could not judge.
	NotChecked []string `json:"notChecked,omitempty"`
}

func historyPath(state string) string { return filepath.Join(state, "history.jsonl") }

// Keep writes the results where others find them, and adds them to the history, which is never rewritten.
func Keep(state string, results []*Result) error {
	var events []Event
	for _, r := range results {
		if !runID.MatchString(r.Run) { // it may come from another machine, and becomes a part of paths
			return fmt.Errorf("keep the result: %q is no run", r.Run)
		}
		if err := r.Write(state); err != nil {
			return err
		}
		e := Event{Time: r.Started, Lab: r.Lab, Verdict: r.Verdict, Seconds: r.Seconds, Workspace: r.Workspace, Run: r.Run}
		for _, c := range r.Checks {
			switch c.State {
			case Failed:
				e.Failed = append(e.Failed, c.ID)
			case NotChecked:
				e.NotChecked = append(e.NotChecked, c.ID)
			}
		}
		events = append(events, e)
	}
	return Record(state, events...)
}

// Record adds events to the history, such as those of lab 0, which has no results.
func Record(state string, events ...Event) error {
	var lines bytes.Buffer
	for _, e := range events {
		if err := json.NewEncoder(&lines).Encode(e); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	file, err := os.OpenFile(historyPath(state), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.Write(lines.Bytes())
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// History reads every verdict on the workspace, oldest first. A line that a crash cut short is left out.
func History(state, workspace string) (events []Event, err error) {
	data, err := os.ReadFile(historyPath(state))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read history: %w", err)
	}
	for line := range bytes.Lines(data) {
		var e Event
		if json.Unmarshal(line, &e) == nil && e.Workspace == workspace {
			events = append(events, e)
		}
	}
	return events, nil
}

// PassedLabs are the labs that have passed, by number, with their last pass.
func PassedLabs(events []Event) map[int]Event {
	passed := map[int]Event{}
	for _, e := range events {
		if e.Verdict == Pass {
			passed[e.Lab] = e
		}
	}
	return passed
}
