package mutants

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Answer is one thing to judge: a wrong answer to a lab, or the right one.
type Answer struct {
	Lab int
	// Mutant is nil for the right answer.
	Mutant *Mutant
}

// right is the id of right answers.
const right = "right-answer"

// ID is the mutant's id, or "right-answer".
func (a Answer) ID() string {
	if a.Mutant == nil {
		return right
	}
	return a.Mutant.ID
}

// Render is what the learner has who answers like this; see [Mutant.Render].
func (a Answer) Render(ctx context.Context, c *course.Course, generator string) (course.Tree, error) {
	if a.Mutant == nil {
		return c.Render(a.Lab)
	}
	return a.Mutant.Render(ctx, c, generator)
}

// Outcome is what came of judging an answer. It stands as it is in the results that scripts read.
type Outcome struct {
	Lab int    `json:"lab"`
	ID  string `json:"id"`
	// Right says that this is the right answer, which has to pass.
	Right bool `json:"right,omitempty"`
	// Misconception is the mutant's.
	Misconception string `json:"misconception,omitempty"`
	// Caught and Cause are those of the check that failed first, "" when none did, and Hint is what the
	// learner is told first.
	Caught string `json:"caught"`
	Cause  string `json:"cause"`
	Hint   string `json:"hint"`
	// Also are the other checks that failed.
	Also []string `json:"also,omitempty"`
	// Seconds are those from the moment at which the cluster and all programs are there to the verdict,
	// and Slowest is the check that took most of them.
	Seconds float64 `json:"seconds"`
	Slowest string  `json:"slowest"`
	// Wrong says what is not as the mutant names it. There should be nothing.
	Wrong []string `json:"wrong,omitempty"`
	// Artifacts is where the evidence of this run is.
	Artifacts string `json:"artifacts"`
}

// Compare says whether a verdict is what the answer names. Seconds stay 0.
func Compare(c *course.Course, a Answer, r *verdict.Result) Outcome {
	o := Outcome{Lab: a.Lab, ID: a.ID(), Right: a.Mutant == nil, Slowest: slowest(r), Artifacts: r.Artifacts}
	first := r.First()
	if first != nil {
		o.Caught, o.Cause = first.ID, first.Cause
		o.Hint = verdict.CourseHints{Course: c}.Hint(first.ID, first.Cause, 0)
	}
	for _, check := range r.Checks {
		if check.State == verdict.Failed && check.ID != o.Caught {
			o.Also = append(o.Also, check.ID)
		}
	}
	if a.Mutant == nil {
		o.Wrong = wrongOfRight(r, first)
		return o
	}
	o.Misconception = a.Mutant.Misconception
	o.Wrong = a.Mutant.wrong(c, r, first)
	return o
}

func wrongOfRight(r *verdict.Result, first *verdict.Check) []string {
	switch {
	case r.Verdict == verdict.Pass:
		return nil
	case first != nil && r.Verdict == verdict.Fail:
		return []string{"a right answer fails: " + tell(first)}
	}
	return []string{"a right answer does not pass: " + unjudged(r)}
}

// wrong says in which ways a verdict is not what the mutant asks for.
func (m *Mutant) wrong(c *course.Course, r *verdict.Result, first *verdict.Check) (wrong []string) {
	switch {
	case r.Verdict == verdict.Pass:
		return []string{"it passes"}
	case r.Verdict != verdict.Fail || first == nil:
		return []string{"no check caught it: " + unjudged(r)}
	case first.ID != m.Caught:
		wrong = append(wrong, fmt.Sprintf("it should be caught by %s, and is by %s", m.Caught, tell(first)))
	case first.Cause != m.Cause:
		wrong = append(wrong, fmt.Sprintf("the cause should be %s, and it is %s", m.Cause, tell(first)))
	}
	if _, check, err := c.Check(first.ID); err != nil || len(check.Hints[first.Cause]) == 0 {
		wrong = append(wrong, fmt.Sprintf("%s has no hints for %s", first.ID, first.Cause))
	}
	for i := range r.Checks {
		check := &r.Checks[i]
		if check.State == verdict.Failed && check != first && check.ID != m.Caught && !slices.Contains(m.Also, check.ID) {
			wrong = append(wrong, "and this fails: "+tell(check))
		}
	}
	return wrong
}

// tell shows a failed check on one line.
func tell(check *verdict.Check) string {
	text := fmt.Sprintf("%s (%s): expected %s; saw %s", check.ID, check.Cause, check.Expected, check.Seen)
	return strings.Join(strings.Fields(text), " ")
}

// unjudged says why a verdict has no failed check.
func unjudged(r *verdict.Result) string {
	switch {
	case r.Build != nil:
		return "it does not compile: " + strings.Join(strings.Fields(r.Build.Output), " ")
	case r.Verdict == verdict.Environment:
		return "the verdict is environment: " + r.Environment.Finding
	}
	return fmt.Sprintf("the verdict is %s", r.Verdict)
}

func slowest(r *verdict.Result) string {
	if len(r.Checks) == 0 {
		return ""
	}
	return slices.MaxFunc(r.Checks, func(a, b verdict.Check) int { return int(1000 * (a.Seconds - b.Seconds)) }).ID
}
