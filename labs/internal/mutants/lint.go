package mutants

import (
	"context"
	"errors"
	"fmt"

	"github.com/example/operator-lab/labs/internal/course"
)

// Lint returns what is wrong with the wrong answers of a course and can be seen without judging them.
func Lint(ctx context.Context, c *course.Course) (problems []course.Problem, err error) {
	all, err := Load(c)
	if p, ok := errors.AsType[course.Problem](err); ok {
		return []course.Problem{p}, nil
	}
	caught := map[string]bool{}
	for _, m := range all {
		for _, text := range m.lint(ctx, c) {
			problems = append(problems, course.Problem{File: m.File, Text: text})
		}
		caught[fmt.Sprint(m.Lab, m.Caught)] = true
	}
	for _, lab := range c.Labs {
		for _, check := range lab.Checks {
			if !caught[fmt.Sprint(lab.Number, check.ID)] {
				problems = append(problems, course.Problem{File: lab.Dir + "/" + Dir, Text: "no wrong answer is caught by the check " + check.ID})
			}
		}
	}
	return problems, err
}

// lint looks at one wrong answer.
func (m *Mutant) lint(ctx context.Context, c *course.Course) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	hints := map[string]map[string][]string{} // of the lab's own checks, and of the opening checks of earlier labs
	for _, lab := range append(c.Openings(m.Lab), c.Labs[m.Lab-1]) {
		for _, check := range lab.Checks {
			hints[check.ID] = check.Hints
		}
	}
	for _, id := range append([]string{m.Caught}, m.Also...) {
		if hints[id] == nil {
			complain("lab %d does not judge a check %q", m.Lab, id)
		}
	}
	if len(hints[m.Caught][m.Cause]) == 0 {
		complain("cause: the check %s has no hints for %q", m.Caught, m.Cause)
	}
	if _, err := m.render(ctx, c); err != nil {
		complain("diff: %v", err)
	}
	return problems
}
