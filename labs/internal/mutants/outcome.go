package mutants

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Answer is one thing to judge: a wrong answer to a lab, its starter, or the right answer.
type Answer struct {
	Lab int
	// Mutant is the wrong answer, nil for the others.
	Mutant *Mutant
	// Starter is what the lab begins with: every one of its checks has to fail.
	Starter bool
	// Earlier are labs that the right answer has to pass besides.
	Earlier []int
	// Run is which run of the same answer this is, from 0. Every run has a seed of its own.
	Run int
}

// The ids of answers that are no mutants.
const (
	solution = "solution"
	starter  = "starter"
)

// ID is the mutant's id, "starter" or "solution".
func (a Answer) ID() string {
	switch {
	case a.Mutant != nil:
		return a.Mutant.ID
	case a.Starter:
		return starter
	}
	return solution
}

// isRight says whether it has to pass.
func (a Answer) isRight() bool { return a.Mutant == nil && !a.Starter }

// Render is what the learner has who answers like this; see [Mutant.Render].
func (a Answer) Render(ctx context.Context, c *course.Course, generator string) (course.Tree, error) {
	switch {
	case a.Mutant != nil:
		return a.Mutant.Render(ctx, c, generator)
	case a.Starter:
		return c.Render(a.Lab - 1)
	}
	return c.Render(a.Lab)
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
	// Environment is why a verdict blames the machine, "" when none does.
	Environment string `json:"environment,omitempty"`
	// Again is the same of a verdict after which the answer was judged once more.
	Again string `json:"again,omitempty"`
	// Artifacts is where the evidence of this run is.
	Artifacts string `json:"artifacts"`
}

// Compare says whether the verdicts, the one on the answer's own lab last, are what the answer names. Seconds stay 0.
func Compare(c *course.Course, a Answer, results ...*verdict.Result) Outcome {
	r := results[len(results)-1]
	o := Outcome{Lab: a.Lab, ID: a.ID(), Right: a.isRight(), Slowest: slowest(r), Artifacts: r.Artifacts}
	for _, r := range results {
		if r.Verdict == verdict.Environment {
			o.Environment = r.Environment.Finding
		}
	}
	if a.Starter {
		o.Wrong = wrongOfStarter(r)
		return o
	}
	first := r.First()
	if first != nil {
		o.Caught, o.Cause = first.ID, first.Cause
		o.Hint = c.Hint(first.ID, first.Cause, 0)
	}
	for _, check := range r.Checks {
		if check.State == verdict.Failed && check.ID != o.Caught {
			o.Also = append(o.Also, check.ID)
		}
	}
	if a.isRight() {
		for _, r := range results {
			o.Wrong = append(o.Wrong, wrongOfRight(r, r.First())...)
		}
		return o
	}
	o.Misconception = a.Mutant.Misconception
	o.Wrong = a.Mutant.wrong(c, r, first)
	return o
}

// wrongOfStarter wants each check of the lab itself to fail in its own right.
func wrongOfStarter(r *verdict.Result) (wrong []string) {
	if r.Verdict != verdict.Fail {
		wrong = append(wrong, "a starter does not fail: "+unjudged(r))
	}
	for i := range r.Checks {
		if check := &r.Checks[i]; check.Lab == r.Lab && check.State != verdict.Failed {
			wrong = append(wrong, fmt.Sprintf("check %s is %s on the starter", check.ID, check.State))
		}
	}
	return wrong
}

func wrongOfRight(r *verdict.Result, first *verdict.Check) []string {
	switch {
	case r.Verdict == verdict.Pass:
		return nil
	case first != nil && r.Verdict == verdict.Fail:
		return []string{fmt.Sprintf("a right answer fails lab %d: %s", r.Lab, describe(first))}
	}
	return []string{fmt.Sprintf("a right answer does not pass lab %d: %s", r.Lab, unjudged(r))}
}

// wrong says in which ways a verdict is not what the mutant asks for.
func (m *Mutant) wrong(c *course.Course, r *verdict.Result, first *verdict.Check) (wrong []string) {
	switch {
	case r.Verdict == verdict.Pass:
		return []string{"it passes"}
	case r.Verdict != verdict.Fail || first == nil:
		return []string{"no check caught it: " + unjudged(r)}
	case first.ID != m.Caught:
		wrong = append(wrong, fmt.Sprintf("it should be caught by %s, and is by %s", m.Caught, describe(first)))
	case first.Cause != m.Cause:
		wrong = append(wrong, fmt.Sprintf("the cause should be %s, and it is %s", m.Cause, describe(first)))
	}
	if _, check, err := c.Check(first.ID); err != nil || len(check.Hints[first.Cause]) == 0 {
		wrong = append(wrong, fmt.Sprintf("%s has no hints for %s", first.ID, first.Cause))
	}
	for i := range r.Checks {
		check := &r.Checks[i]
		if check.State == verdict.Failed && check != first && check.ID != m.Caught && !slices.Contains(m.Also, check.ID) {
			wrong = append(wrong, "and this fails: "+describe(check))
		}
	}
	return wrong
}

// describe shows a failed check on one line.
func describe(check *verdict.Check) string {
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
