package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Event is one line of .lab/history.jsonl: a verdict that somebody got.
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

// keep writes the results where others find them, and adds them to the history, which is never rewritten.
func keep(state string, results []*Result) error {
	var lines bytes.Buffer
	for _, r := range results {
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

// held are the labs that have ever passed.
func held(events []Event) map[int]bool {
	labs := map[int]bool{}
	for _, e := range events {
		labs[e.Lab] = labs[e.Lab] || e.Verdict == Pass
	}
	return labs
}

// failing are the checks that failed the last time that one of labs was judged. Code that did not compile changes nothing, and
// neither does a verdict on the machine, whatever failed there.
func failing(events []Event, labs []int) []string {
	for _, e := range slices.Backward(events) {
		if slices.Contains(labs, e.Lab) && (e.Verdict == Pass || e.Verdict == Fail && len(e.Failed) > 0) {
			return e.Failed
		}
	}
	return nil
}

// PassedLabs are the labs whose last verdict on the workspace is pass.
func PassedLabs(events []Event) map[int]Event {
	passed := map[int]Event{}
	for _, e := range events {
		switch e.Verdict {
		case Pass:
			passed[e.Lab] = e
		case Fail:
			delete(passed, e.Lab)
		}
	}
	return passed
}
