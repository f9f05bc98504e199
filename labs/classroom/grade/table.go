package grade

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// verdictWidth has room for the longest word of a verdict.
	verdictWidth = 5
	// widestName is how much room names are given.
	widestName = 30
)

// Table is printed line by line, as grades become known.
type Table struct {
	out  io.Writer
	labs []int
	name int // width
}

// NewTable begins a table with its head.
func NewTable(out io.Writer, labs []int, all []Submission) *Table {
	t := &Table{out: out, labs: labs, name: len("learner")}
	for _, s := range all {
		t.name = max(t.name, min(utf8.RuneCountInString(s.Name), widestName))
	}
	fmt.Fprintf(out, "%-*s", t.name, "learner")
	for _, n := range labs {
		fmt.Fprintf(out, "  %-*d", verdictWidth, n)
	}
	fmt.Fprintln(out, "  failed first")
	return t
}

// Tell prints a line.
func (t *Table) Tell(g Grade) {
	text := padded(g.Name, t.name)
	for _, n := range t.labs {
		text += fmt.Sprintf("  %-*s", verdictWidth, word(g.Result(n)))
	}
	fmt.Fprintln(t.out, strings.TrimRight(text+"  "+First(g.Results), " "))
}

// padded has a width in characters. What is longer is cut.
func padded(text string, width int) string {
	runes := []rune(text)
	if len(runes) > width {
		runes = append(runes[:width-1], '…')
	}
	return string(runes) + strings.Repeat(" ", width-len(runes))
}

// word is a verdict in a table. That of a machine at fault is the machine's.
func word(r *verdict.Result) string {
	switch {
	case r == nil:
		return "-"
	case r.Verdict == verdict.Environment:
		return "host"
	}
	return string(r.Verdict)
}

// First is what failed first, in one line: the first lab that did not pass, and the check of it that explains the
// others. "" when everything passed.
func First(results []*verdict.Result) string {
	for _, r := range results {
		if r.Verdict != verdict.Pass {
			return line(fmt.Sprintf("lab %d: %s", r.Lab, reason(r)))
		}
	}
	return ""
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

// line is the first line of a text, as it may be printed.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return plain.Short(text, lineLimit)
}

// WriteCSV writes a line for each learner and lab.
func WriteCSV(w io.Writer, c *course.Course, grades []Grade) error {
	lines := [][]string{{"learner", "lab", "title", "verdict", "holds", "of", "failed first", "cluster"}}
	for _, g := range grades {
		for _, r := range g.Results {
			lines = append(lines, []string{
				plain.Cell(g.Name), strconv.Itoa(r.Lab), c.Labs[r.Lab-1].Title, string(r.Verdict),
				strconv.Itoa(r.Count(verdict.Passed)), strconv.Itoa(len(r.Checks) - r.Count(verdict.NotChecked)),
				plain.Cell(line(reason(r))), "embedded in " + g.Runtime,
			})
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// WriteJSON writes all that is known of each learner.
func WriteJSON(w io.Writer, grades []Grade) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(struct {
		Schema   int     `json:"schema"`
		Learners []Grade `json:"learners"`
	}{2, grades})
}
