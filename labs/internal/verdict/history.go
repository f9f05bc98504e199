package verdict

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// remember appends the results to the history, which is never rewritten.
func remember(state string, results []*Result) error {
	var lines []byte
	for _, r := range results {
		e := Event{Time: r.Started, Lab: r.Lab, Verdict: r.Verdict, Seconds: r.Seconds, Workspace: r.Workspace, Run: r.Run}
		for _, c := range r.Checks {
			switch c.State {
			case Failed:
				e.Failed = append(e.Failed, c.ID)
			case NotChecked:
				e.NotChecked = append(e.NotChecked, c.ID)
			}
		}
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write history: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	file, err := os.OpenFile(historyPath(state), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	_, err = file.Write(lines)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// History reads every verdict on the workspace, oldest first. A line that a crash cut short is left out.
func History(state, workspace string) ([]Event, error) {
	file, err := os.Open(historyPath(state))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer file.Close()
	var events []Event
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		var e Event
		if json.Unmarshal(line, &e) == nil && e.Workspace == workspace {
			events = append(events, e)
		}
		switch {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("read history: %w", err)
		}
	}
}

// held are the labs that have ever passed.
func held(events []Event) map[int]bool {
	labs := map[int]bool{}
	for _, e := range events {
		if e.Verdict == Pass {
			labs[e.Lab] = true
		}
	}
	return labs
}

// failing are the checks that failed the last time that one of labs was judged. Code that did not compile changes
// nothing, and neither does a verdict on the machine, whatever failed there.
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
