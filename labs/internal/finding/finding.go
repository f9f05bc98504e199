// Package finding is what a check saw, in a form that a verdict can explain.
package finding

import (
	"errors"
	"fmt"
	"strings"
)

// CauseOther is the cause that every check has a hint for.
const CauseOther = "other"

// CauseMachine is the cause when the machine could not do what a check needs, such as start a program. A
// check that fails with it says nothing about the learner.
const CauseMachine = "machine"

// Finding says what a check expected and what it saw instead. It is an error, so that helpers can
// return it and checks can wrap it.
type Finding struct {
	// Cause is a key of the check's hints in lab.yaml, such as "no-deployment". "other" always exists.
	Cause string `json:"cause"`
	// Expected and Seen are single sentences or lists of field lines, in the learner's terms.
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	// Fields are the differences when an object was compared, the most important first. Expected and
	// Seen make sense without them.
	Fields []Field `json:"fields,omitempty"`
	// Late says that a time limit ended the check: a slow machine may be the cause.
	Late bool `json:"late,omitempty"`
}

// Field is one difference: spec.replicas, want 4, have 2.
type Field struct {
	Path string `json:"path"`
	Want string `json:"want"`
	Have string `json:"have"`
}

// String is the difference as a verdict shows it.
func (f Field) String() string { return fmt.Sprintf("%s: want %s, have %s", f.Path, f.Want, f.Have) }

// Evidence is something seen that may explain a finding: lines of the manager's log, events, refused
// requests, states of containers. It never holds a Secret's data or a token.
type Evidence struct {
	// Title says what the lines are, such as "the API server refused".
	Title string `json:"title"`
	// Lines are few and chosen; the whole of it lies in the artifacts.
	Lines []string `json:"lines"`
}

// New makes a finding. The last argument is a format for what was seen.
func New(cause, expected, seenFormat string, args ...any) *Finding {
	return &Finding{Cause: cause, Expected: expected, Seen: fmt.Sprintf(seenFormat, args...)}
}

// With adds differences to the finding, and returns it.
func (f *Finding) With(fields ...Field) *Finding {
	f.Fields = append(f.Fields, fields...)
	return f
}

// TooLate sets Late, and returns the finding.
func (f *Finding) TooLate() *Finding {
	f.Late = true
	return f
}

// WithCause returns a copy of the finding with another cause.
func (f *Finding) WithCause(cause string) *Finding {
	other := *f
	other.Cause = cause
	return &other
}

// Machine makes a finding with [CauseMachine]. what is what was tried, such as "start a program", and err how that failed.
func Machine(what string, err error) *Finding {
	return New(CauseMachine, "a machine that can "+what, "%v", err)
}

// Error gives both sides in one text.
func (f *Finding) Error() string {
	return fmt.Sprintf("expected %s; saw %s", f.Expected, f.Seen)
}

// Of finds the finding in err's chain. An error without one becomes a finding with the cause "other",
// so that nothing is ever reported without a reason.
func Of(err error) *Finding {
	var f *Finding
	if errors.As(err, &f) {
		return f
	}
	return &Finding{Cause: CauseOther, Expected: "no error", Seen: strings.TrimSpace(err.Error())}
}
