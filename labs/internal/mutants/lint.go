package mutants

import (
	"context"
	"fmt"
	"slices"

	"github.com/example/operator-lab/labs/internal/course"
)

// commonPerLab is how many of them the instructor's guide tells of: as many as are remembered on the way to a desk.
const commonPerLab = 2

// Lint returns what is wrong with the wrong answers of a course and can be seen without judging them.
func Lint(ctx context.Context, c *course.Course) ([]course.Problem, error) {
	all, problems, err := load(c)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		for _, text := range m.lint(ctx, c) {
			problems = append(problems, course.Problem{File: m.File, Text: text})
		}
	}
	for _, lab := range c.Labs {
		problems = append(problems, lintLab(lab, all)...)
	}
	return problems, nil
}

// lint looks at one wrong answer.
func (m *Mutant) lint(ctx context.Context, c *course.Course) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	lab, err := c.Lab(m.Lab)
	if err != nil {
		return []string{err.Error()}
	}
	judged := judgedChecks(c, lab)
	if check := find(judged, m.Caught); check == nil {
		complain("caught: lab %d does not judge a check %q", m.Lab, m.Caught)
	} else if len(check.Hints[m.Cause]) == 0 {
		complain("cause: the check %s has no hints for %q", m.Caught, m.Cause)
	}
	for i, id := range m.Also {
		switch {
		case find(judged, id) == nil:
			complain("also[%d]: lab %d does not judge a check %q", i, m.Lab, id)
		case id == m.Caught:
			complain("also[%d]: %q is the check that has to catch it", i, id)
		case slices.Contains(m.Also[:i], id):
			complain("also[%d]: %q stands here twice", i, id)
		}
	}
	right, err := c.Render(m.Stage)
	if err != nil {
		return append(problems, "stage: "+err.Error())
	}
	wrong, err := m.course(ctx, c)
	if err != nil {
		return append(problems, "diff: "+err.Error())
	}
	tree, err := wrong.Render(m.Stage)
	if err != nil {
		return append(problems, "diff: "+err.Error())
	}
	if len(tree.Diff(right)) == 0 {
		complain("diff: changes nothing at stage %d", m.Stage)
	}
	return problems
}

// lintLab looks at all wrong answers of a lab together.
func lintLab(lab *course.Lab, all []*Mutant) (problems []course.Problem) {
	dir := lab.Dir + "/" + Dir
	common, caught := 0, map[string]bool{}
	for _, m := range all {
		if m.Lab == lab.Number {
			caught[m.Caught] = true
			if m.Common {
				common++
			}
		}
	}
	if common != commonPerLab {
		problems = append(problems, course.Problem{File: dir, Text: fmt.Sprintf(
			"common: %d wrong answers have it, and it marks the %d that are seen most", common, commonPerLab)})
	}
	for _, check := range lab.Checks {
		if !caught[check.ID] {
			problems = append(problems, course.Problem{File: dir, Text: fmt.Sprintf("no wrong answer is caught by the check %s", check.ID)})
		}
	}
	return problems
}

// judgedChecks are the checks of a verdict on a lab: its own, and the opening checks of earlier labs.
func judgedChecks(c *course.Course, lab *course.Lab) []course.Check {
	checks := slices.Clone(lab.Checks)
	for _, earlier := range c.Openings(lab.Number) {
		checks = append(checks, earlier.Checks...)
	}
	return checks
}

func find(checks []course.Check, id string) *course.Check {
	if i := slices.IndexFunc(checks, func(c course.Check) bool { return c.ID == id }); i >= 0 {
		return &checks[i]
	}
	return nil
}
