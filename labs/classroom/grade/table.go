package grade

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Line says how many labs passed, who it is, and what failed first: the first lab that did not pass, and the check of it that
// explains the others.
func (g Grade) Line() string {
	passed, first := 0, ""
	for _, r := range g.Results {
		if r.Verdict == verdict.Pass {
			passed++
		} else if first == "" {
			first = fmt.Sprintf("lab %d: %s", r.Lab, reason(r))
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%2d of %d  %s  %s", passed, len(g.Results), g.Name, plain.Short(first, lineLimit)))
}

func reason(r *verdict.Result) string {
	switch first := r.First(); {
	case r.Verdict == verdict.Environment:
		return "the machine: " + r.Environment.Finding
	case r.Build != nil:
		return "build: " + r.Build.Output
	case first != nil:
		return first.ID
	}
	return ""
}

// CSV is a table with a line for each learner and lab.
func CSV(c *course.Course, grades []Grade) []byte {
	lines := [][]string{{"learner", "lab", "title", "verdict", "holds", "of", "failed first", "cluster"}}
	for _, g := range grades {
		for _, r := range g.Results {
			lines = append(lines, []string{
				cell(g.Name), strconv.Itoa(r.Lab), c.Labs[r.Lab-1].Title, string(r.Verdict),
				strconv.Itoa(r.Count(verdict.Passed)), strconv.Itoa(len(r.Checks) - r.Count(verdict.NotChecked)),
				cell(plain.Short(reason(r), lineLimit)), "embedded in " + g.Runtime,
			})
		}
	}
	var text bytes.Buffer
	_ = csv.NewWriter(&text).WriteAll(lines) // to memory
	return text.Bytes()
}

// cell is text that no spreadsheet takes for a formula.
func cell(text string) string {
	text = strings.ReplaceAll(text, ";", ",") // where lists have semicolons, a cell begins behind one
	if text != "" && strings.Contains("=+-@\t\r", text[:1]) {
		return "'" + text
	}
	return text
}
