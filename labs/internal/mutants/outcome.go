package mutants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Outcome is what came of judging an answer.
type Outcome struct {
	Answer Answer
	// Caught says which check failed first, and for what cause; "" when none did.
	Caught string
	// Wrong says what is not as the answer names it. There should be nothing.
	Wrong []string
	// Environment is why a verdict blames the machine, "" when none does.
	Environment string
	// Again is the same of a first verdict, after which the answer was judged once more.
	Again string
	// Seconds are those from the moment at which the cluster and all programs are there to the verdict.
	Seconds float64
	// Dir has the workspace, what the learner reads (report.txt) and the artifacts.
	Dir string
}

// String is one line about the outcome, and one for each thing that is wrong.
func (o Outcome) String() string {
	what := "passes"
	switch {
	case o.Caught != "":
		what = "caught by " + o.Caught
	case o.Answer.Starter:
		what = "every check fails"
	}
	line := fmt.Sprintf("%-44s %6.1f s  %s", o.Answer, o.Seconds, what)
	if o.Again != "" {
		line += "\n  judged once more, because the machine was to blame: " + o.Again
	}
	if len(o.Wrong) > 0 {
		line += "\n  wrong: " + strings.Join(append(o.Wrong, "the evidence is in "+o.Dir), "\n  ")
	}
	return line
}

// Compare says whether the verdicts, the one on the answer's own lab last, are what the answer names. report is what the learner
// reads of that one.
func Compare(c *course.Course, a Answer, report string, results ...*verdict.Result) Outcome {
	o, last, m := Outcome{Answer: a}, results[len(results)-1], a.Mutant
	complain := func(format string, args ...any) { o.Wrong = append(o.Wrong, fmt.Sprintf(format, args...)) }
	first := last.First()
	if first != nil && !a.Starter {
		o.Caught = first.ID + ": " + first.Cause
	}
	for _, r := range results {
		o.Environment = cmp.Or(o.Environment, r.Environment.Finding)
		if m == nil && !a.Starter && r.Verdict != verdict.Pass {
			complain("a right answer does not pass lab %d: %s", r.Lab, explain(r))
		}
	}
	switch {
	case a.Starter && last.Verdict != verdict.Fail:
		complain("a starter does not fail: %s", explain(last))
	case m == nil:
	case last.Verdict == verdict.Pass:
		complain("it passes")
		return o
	case last.Verdict != verdict.Fail || first == nil:
		complain("no check caught it: %s", explain(last))
		return o
	case first.ID != m.Caught:
		complain("it should be caught by %s, and is by %s", m.Caught, describe(first))
	case first.Cause != m.Cause:
		complain("the cause should be %s, and it is %s", m.Cause, describe(first))
	}
	if m != nil {
		if hint := c.Hint(m.Caught, m.Cause, 0); hint == "" || !strings.Contains(oneLine(report), oneLine(hint)) {
			complain("the learner does not read the hint of %s for %s: %q", m.Caught, m.Cause, hint)
		}
	}
	for i := range last.Checks {
		check := &last.Checks[i]
		failed := check.State == verdict.Failed
		switch {
		case a.Starter && !failed && check.State != verdict.NotChecked: // each has to fail in its own right
			complain("check %s is %s on the starter", check.ID, check.State)
		case m != nil && failed && check.ID != first.ID && check.ID != m.Caught && !slices.Contains(m.Also, check.ID):
			complain("and this fails: %s", describe(check))
		}
	}
	return o
}

// describe shows a failed check on one line.
func describe(check *verdict.Check) string {
	return oneLine(fmt.Sprintf("%s (%s): expected %s; saw %s", check.ID, check.Cause, check.Expected, check.Seen))
}

// explain says why a verdict is what it is.
func explain(r *verdict.Result) string {
	switch {
	case r.Build != nil:
		return "it does not compile: " + oneLine(r.Build.Output)
	case r.Verdict == verdict.Environment:
		return "the verdict is environment: " + r.Environment.Finding
	case r.First() != nil:
		return describe(r.First())
	}
	return fmt.Sprintf("the verdict is %s", r.Verdict)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
