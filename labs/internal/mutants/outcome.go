package mutants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Outcome is what came of judging an answer.
type Outcome struct {
	Answer fmt.Stringer
	// Caught says which check failed first, and for what cause; "" when none did, and for a starter.
	Caught string
	// Wrong says what the answer does not expect. It should be empty.
	Wrong []string
	// Seconds are those of the whole run.
	Seconds float64
	// Dir has the workspace, what the learner reads (report.txt) and the artifacts.
	Dir string
}

// String is one line about the outcome, and one for each thing that is wrong.
func (o Outcome) String() string {
	line := fmt.Sprintf("%-44s %6.1f s  %s", o.Answer, o.Seconds, cmp.Or(o.Caught, "as it should"))
	if len(o.Wrong) > 0 {
		line += "\n  wrong: " + strings.Join(append(o.Wrong, "the evidence is in "+o.Dir), "\n  ")
	}
	return line
}

// Compare says whether the verdicts, the one on the answer's own lab last, are those that the answer expects. report is what the
// learner reads about that lab.
func Compare(c *course.Course, a Answer, report string, results ...*verdict.Result) Outcome {
	last := results[len(results)-1]
	o := Outcome{Answer: a, Seconds: last.Seconds}
	complain := func(format string, args ...any) { o.Wrong = append(o.Wrong, fmt.Sprintf(format, args...)) }
	for _, r := range results {
		if a.Mutant == nil && !a.Starter && r.Verdict != verdict.Pass {
			complain("a right answer does not pass lab %d: %s", r.Lab, explain(r))
		}
	}
	if first := last.First(); first != nil && !a.Starter {
		o.Caught = "caught by " + first.ID + ": " + first.Cause
	}
	switch {
	case a.Starter:
		compareStarter(last, complain)
	case a.Mutant != nil:
		a.Mutant.compare(last, report, c.Hint(a.Mutant.Caught, a.Mutant.Cause, 0), complain)
	}
	return o
}

// compareStarter complains of checks that do not fail, such as one that is only blocked.
func compareStarter(r *verdict.Result, complain func(format string, args ...any)) {
	if r.Verdict != verdict.Fail {
		complain("a starter does not fail: %s", explain(r))
	}
	for _, check := range r.Checks {
		if check.State != verdict.Failed && check.State != verdict.NotChecked {
			complain("check %s is %s on the starter", check.ID, check.State)
		}
	}
}

// compare complains of what the wrong answer does not expect.
func (m *Mutant) compare(r *verdict.Result, report, hint string, complain func(format string, args ...any)) {
	first := r.First()
	if r.Verdict != verdict.Fail || first == nil {
		complain("no check caught it: %s", explain(r))
		return
	}
	if first.ID != m.Caught || first.Cause != m.Cause {
		complain("it should be caught by %s (%s), and is by %s", m.Caught, m.Cause, describe(first))
	}
	if hint == "" || !strings.Contains(plain.Line(report), plain.Line(hint)) {
		complain("the learner does not read the hint of %s for %s: %q", m.Caught, m.Cause, hint)
	}
	for i, check := range r.Checks {
		if check.State == verdict.Failed && check.ID != first.ID && check.ID != m.Caught && !slices.Contains(m.Also, check.ID) {
			complain("and this fails: %s", describe(&r.Checks[i]))
		}
	}
}

// describe shows a failed check on one line.
func describe(check *verdict.Check) string {
	return plain.Line(fmt.Sprintf("%s (%s): expected %s; saw %s", check.ID, check.Cause, check.Expected, check.Seen))
}

// explain says why a verdict is what it is.
func explain(r *verdict.Result) string {
	switch {
	case r.Build != nil:
		return "it does not compile: " + plain.Line(r.Build.Output)
	case r.First() != nil && r.Verdict == verdict.Fail:
		return describe(r.First())
	}
	return strings.TrimSuffix(fmt.Sprintf("the verdict is %s: %s", r.Verdict, r.Environment.Finding), ": ")
}
