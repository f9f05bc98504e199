package mutants

import (
	"context"
	"fmt"
	"slices"

	"github.com/example/operator-lab/labs/internal/course"
)

// Lint returns what is wrong with the wrong answers of a course and can be seen without judging them.
func Lint(ctx context.Context, c *course.Course) ([]course.Problem, error) {
	all, problems, err := load(c)
	if err != nil {
		return nil, err
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
	return problems, nil
}

// lint looks at one wrong answer.
func (m *Mutant) lint(ctx context.Context, c *course.Course) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	judged := map[string]course.Check{} // the lab's own checks, and the opening checks of earlier labs
	for _, lab := range append(c.Openings(m.Lab), c.Labs[m.Lab-1]) {
		for _, check := range lab.Checks {
			judged[check.ID] = check
		}
	}
	for _, id := range append([]string{m.Caught}, m.Also...) {
		if _, ok := judged[id]; !ok {
			complain("lab %d does not judge a check %q", m.Lab, id)
		}
	}
	if check, ok := judged[m.Caught]; ok && len(check.Hints[m.Cause]) == 0 {
		complain("cause: the check %s has no hints for %q", m.Caught, m.Cause)
	}
	if slices.Contains(m.Also, m.Caught) {
		complain("also: %q is the check that has to catch it", m.Caught)
	}
	right, err := c.Render(m.Lab)
	if err != nil {
		return append(problems, err.Error())
	}
	switch tree, err := m.render(ctx, c); {
	case err != nil:
		complain("diff: %v", err)
	case len(tree.Diff(right)) == 0:
		complain("diff: changes nothing at stage %d", m.Lab)
	}
	return problems
}
