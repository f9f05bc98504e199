package room

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// SizeLimit is how many bytes a result may have. A verdict with evidence for every check has a twentieth of it.
const SizeLimit = 512 << 10

const (
	// schema is the form of results that this board reads.
	schema = 1
	// checksLimit is how many checks a result may have: the whole course has half as many.
	checksLimit = 200
	// detailsLimit is how many differences, pieces of evidence, lines of them and words of advice a result may have in all. An
	// empty one has three bytes, and a hundred in memory.
	detailsLimit = 5000
	// firstYear is before all runs. JSON has no time before the year 0, and two clocks that are wrong can make one.
	firstYear = 1970
	// longestRun is how long a run can have taken; more is a mistake of its clock.
	longestRun = 24 * time.Hour
)

var (
	runForm   = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$`)
	checkForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,79}$`)
)

// Accept reads a result that a learner's machine sent. The machine is not trusted: what is not a verdict on
// a lab of the course is an error in one line, and what could tell who somebody is beyond their name, such
// as the paths of their home folder, is left out.
func Accept(data []byte, c *course.Course) (*verdict.Result, error) {
	if len(data) > SizeLimit {
		return nil, fmt.Errorf("the result has %d bytes, and a board takes %d", len(data), SizeLimit)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the result is not UTF-8")
	}
	if err := json.Unmarshal(data, &struct{ Checks fewChecks }{}); err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	r := &verdict.Result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	if err := valid(r, c); err != nil {
		return nil, err
	}
	r.Workspace, r.Artifacts = "workspace", ".lab/artifacts/"+r.Run
	r.Plain()
	return r, nil
}

// fewChecks is a list that is not too long. Two bytes of JSON make a check, which takes a hundred times that in memory.
type fewChecks struct{}

// UnmarshalJSON sees each list of that name. An object may have several, and a slice would hold the last one only.
func (*fewChecks) UnmarshalJSON(data []byte) error {
	list := json.NewDecoder(bytes.NewReader(data))
	if _, err := list.Token(); err != nil {
		return err
	}
	for n := 0; list.More(); n++ {
		if n == checksLimit {
			return fmt.Errorf("the result has more than %d checks", checksLimit)
		}
		var one json.RawMessage
		if err := list.Decode(&one); err != nil {
			return err
		}
	}
	return nil
}

func valid(r *verdict.Result, c *course.Course) error {
	if _, err := c.Lab(r.Lab); err != nil {
		return err
	}
	switch {
	case r.Schema != schema:
		return fmt.Errorf("the result has schema %d, and this board reads %d: use the same checkout in the whole room", r.Schema, schema)
	case r.Verdict != verdict.Pass && r.Verdict != verdict.Fail && r.Verdict != verdict.Environment:
		return fmt.Errorf("%.20q is no verdict", r.Verdict)
	case !runForm.MatchString(r.Run):
		return fmt.Errorf("%.80q is no name of a run", r.Run)
	case r.Started.IsZero() || r.Seconds < 0 || r.Seconds > longestRun.Seconds():
		return errors.New("the result does not say when its run was")
	}
	if n := details(r); n > detailsLimit {
		return fmt.Errorf("the result has %d lines about its checks, and a board takes %d", n, detailsLimit)
	}
	return validChecks(r, c)
}

// details counts what stands below the checks.
func details(r *verdict.Result) int {
	n := len(r.Advice)
	for _, check := range r.Checks {
		n += len(check.Fields) + len(check.Evidence)
		for _, evidence := range check.Evidence {
			n += len(evidence.Lines)
		}
	}
	return n
}

// validChecks also gives checks the titles of the course. It refuses what the course does not have: names that never repeat
// would make the board compare each with all.
func validChecks(r *verdict.Result, c *course.Course) error {
	seen := map[string]bool{}
	for i := range r.Checks {
		check := &r.Checks[i]
		if !checkForm.MatchString(check.ID) {
			return fmt.Errorf("%.80q is no check", check.ID)
		}
		switch check.State {
		case verdict.Passed, verdict.Failed, verdict.Blocked, verdict.NotChecked:
		default:
			return fmt.Errorf("%.20q is no state of a check", check.State)
		}
		_, known, err := c.Check(check.ID)
		switch {
		case err != nil:
			return fmt.Errorf("the course has no check %s: use the same checkout in the whole room", check.ID)
		case seen[check.ID]:
			return fmt.Errorf("the result has the check %s twice", check.ID)
		}
		seen[check.ID], check.Title = true, known.Title
	}
	if r.Verdict == verdict.Pass && (r.Count(verdict.Failed) > 0 || r.Count(verdict.Blocked) > 0 || r.Build != nil) {
		return errors.New("the result says pass, and not every check holds")
	}
	return nil
}

// Ended is when the run ended by the board's clock. sent is what the learner's clock said when the result
// was received; its difference to received is how wrong that clock is. Without it the clock is believed.
// A run never ends after its result was received.
func Ended(r *verdict.Result, sent, received time.Time) time.Time {
	ended := r.Started.Add(time.Duration(r.Seconds * float64(time.Second)))
	if !sent.IsZero() {
		ended = ended.Add(received.Sub(sent))
	}
	if ended.Year() < firstYear {
		return received
	}
	if ended.After(received) {
		return received
	}
	return ended
}
