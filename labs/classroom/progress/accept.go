package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// SizeLimit is how many bytes a result may have. A verdict with evidence for every check has a twentieth of it.
const SizeLimit = 512 << 10

// schema is the form of results that a board reads.
const schema = 1

// Accept reads a result that a learner's machine sent. What is not a verdict on a lab of the course is an error in one line, and what
// could tell who somebody is beyond their name, such as the paths of their home folder, is left out.
func Accept(data []byte, c *course.Course) (*verdict.Result, error) {
	r := &verdict.Result{}
	switch err := json.Unmarshal(data, r); {
	case err != nil:
		return nil, fmt.Errorf("read result: %w", err)
	case r.Schema != schema:
		return nil, fmt.Errorf("the result has schema %d, and this board reads %d: use the same checkout in the whole room", r.Schema, schema)
	case r.Verdict != verdict.Pass && r.Verdict != verdict.Fail && r.Verdict != verdict.Environment:
		return nil, fmt.Errorf("%.20q is no verdict", r.Verdict)
	case r.Run == "" || r.Started.IsZero() || r.Seconds < 0:
		return nil, errors.New("the result does not say which run it is of, and when that was")
	}
	lab, err := c.Lab(r.Lab)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range r.Checks {
		check := &r.Checks[i]
		known := c.Of(lab).Check(check.ID)
		switch {
		case known == nil:
			return nil, fmt.Errorf("the course has no check %.80q: use the same checkout in the whole room", check.ID)
		case seen[check.ID]:
			return nil, fmt.Errorf("the result has the check %s twice", check.ID)
		}
		seen[check.ID], check.Title = true, known.Title
	}
	if r.Verdict == verdict.Pass && (r.Count(verdict.Passed)+r.Count(verdict.NotChecked) < len(r.Checks) || r.Build != nil) {
		return nil, errors.New("the result says pass, and not every check holds")
	}
	r.Workspace, r.Artifacts = "workspace", ".lab/artifacts/"+r.Run
	if r.Lab < 0 {
		r.Artifacts = "" // a task has none
	}
	r.Plain()
	return r, nil
}

// Ended is when the run ended by the learner's clock, and never after its result was received.
func Ended(r *verdict.Result, received time.Time) time.Time {
	ended := r.Started.Add(time.Duration(r.Seconds * float64(time.Second)))
	if ended.After(received) {
		return received
	}
	return ended
}
