package guide

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
)

// An agenda of the guide is a table under a comment that says how long it takes:
//
//	<!-- agenda: 90 minutes -->
//
//	| from | minutes | what |
//	|---|---|---|
//	| 18:00 | 15 | Welcome |
//	| 18:15 | 30 of 45 | Lab 4: … |
//	| 18:45 | | The end |
//
// The minutes are what an author changes; the times, the sum and what a lab is said to take follow from them and
// from lab.yaml.
type agenda struct {
	line    int // of the comment, from 1
	minutes int
	rows    []row
}

type row struct {
	line    int
	at      int // minutes since midnight
	minutes int // 0 in the last row
	of      int // what the lab takes where it has less, else 0
	lab     int // 0 where the row is about none
}

// leastShare is how much of its minutes a lab gets at least, in per cent. Less is no lab but a demonstration.
const leastShare = 60

var (
	agendaComment = regexp.MustCompile(`^<!--\s*agenda:\s*([0-9]{1,4}) minutes\s*-->\s*$`)
	agendaRow     = regexp.MustCompile(`^\|\s*([01][0-9]|2[0-3]):([0-5][0-9])\s*` + // from
		`\|\s*(?:([0-9]{1,4})(?: of ([0-9]{1,4}))?)?\s*` + // minutes
		`\|\s*(?:Lab ([0-9]{1,2})\b)?.*\|\s*$`)
	agendaHead = regexp.MustCompile(`^\|(\s*from\s*\||[\s:|-]+$)`)
)

// findAgendas finds the agendas of a text, and the rows in them that say nothing.
func findAgendas(text string) (found []agenda, problems []course.Problem) {
	var a *agenda // the one that is being read
	for i, line := range strings.Split(text, "\n") {
		switch m := agendaComment.FindStringSubmatch(line); {
		case m != nil:
			found = append(found, agenda{line: i + 1, minutes: number(m[1])})
			a = &found[len(found)-1]
		case a == nil || agendaHead.MatchString(line):
		case strings.HasPrefix(line, "|"):
			m := agendaRow.FindStringSubmatch(line)
			if m == nil {
				text := "a row of an agenda is | 18:00 | 15 | what |"
				problems = append(problems, course.Problem{File: File, Line: i + 1, Text: text})
				continue
			}
			a.rows = append(a.rows, row{
				line: i + 1, at: 60*number(m[1]) + number(m[2]), minutes: number(m[3]), of: number(m[4]), lab: number(m[5]),
			})
		case strings.TrimSpace(line) != "" || len(a.rows) > 0:
			a = nil // the table is over, or there is none
		}
	}
	return found, problems
}

// number reads digits; none are 0.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// lint returns what does not follow from the minutes.
func (a *agenda) lint(c *course.Course) (problems []course.Problem) {
	complain := func(line int, format string, args ...any) {
		problems = append(problems, course.Problem{File: File, Line: line, Text: fmt.Sprintf(format, args...)})
	}
	if len(a.rows) < 2 {
		complain(a.line, "the agenda has no table, or one without an end")
		return problems
	}
	sum, earlier := 0, 0
	for i, r := range a.rows {
		last := i == len(a.rows)-1
		if want := a.rows[0].at + sum; r.at != want {
			complain(r.line, "begins at %s: what is above ends at %s", clock(r.at), clock(want))
		}
		if last != (r.minutes == 0) {
			complain(r.line, "the last row, and no other, has no minutes")
		}
		for _, text := range r.lint(c) {
			complain(r.line, "%s", text)
		}
		if r.lab != 0 && r.lab <= earlier {
			complain(r.line, "lab %d comes after lab %d", r.lab, earlier)
		}
		sum, earlier = sum+r.minutes, max(earlier, r.lab)
	}
	if sum != a.minutes {
		complain(a.line, "the agenda takes %d minutes: its rows add up to %d", a.minutes, sum)
	}
	return problems
}

// lint compares what a lab gets with what it takes.
func (r *row) lint(c *course.Course) (problems []string) {
	if r.lab == 0 {
		if r.of != 0 {
			return []string{"only a lab has minutes of other minutes"}
		}
		return nil
	}
	lab, err := c.Lab(r.lab)
	switch {
	case err != nil:
		return []string{err.Error()}
	case r.of == 0 && r.minutes < lab.Minutes:
		return []string{fmt.Sprintf("lab %d takes %d minutes: write \"%d of %d\" if it has to do with less",
			r.lab, lab.Minutes, r.minutes, lab.Minutes)}
	case r.of != 0 && r.of != lab.Minutes:
		return []string{fmt.Sprintf("lab %d takes %d minutes, not %d", r.lab, lab.Minutes, r.of)}
	case r.of != 0 && r.minutes >= r.of:
		return []string{fmt.Sprintf("lab %d has all of its minutes: write \"%d\"", r.lab, r.minutes)}
	case 100*r.minutes < leastShare*lab.Minutes:
		return []string{fmt.Sprintf("lab %d has %d of its %d minutes: below %d %% nobody gets anywhere",
			r.lab, r.minutes, lab.Minutes, leastShare)}
	}
	return nil
}
