// Package page turns the state of a room into what an instructor reads: a page and its live updates. Text from learners goes through html/template or is sent as JSON; it is never HTML.
package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// The states of a cell are the verdicts, and untried.
const untried = "untried"

// Row is one learner on the page.
type Row struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Stuck bool   `json:"stuck"`
	Cells []Cell `json:"cells"`
}

// Cell is a learner's last verdict on a lab, in a symbol, in a word, and in a sentence for who does not see it.
type Cell struct {
	Lab    int    `json:"lab"`
	State  string `json:"state"`
	Symbol string `json:"symbol"`
	Text   string `json:"text"`
	Label  string `json:"label"`
	// Href is where the cell opens.
	Href string `json:"href"`
	// Run is the last one.
	Run string `json:"run"`
}

// Link is something to open a cell with.
type Link struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

// Stuck is a line of the list of who is stuck.
type Stuck struct {
	Link
	Check string `json:"check"`
	Since string `json:"since"`
	Quiet bool   `json:"quiet"`
}

// Obstacle is a line of the list of what stops people.
type Obstacle struct {
	Count    string `json:"count"`
	Check    string `json:"check"`
	Learners []Link `json:"learners"`
	More     string `json:"more"`
}

// Step is how far the room is with a lab.
type Step struct {
	Lab    int    `json:"lab"`
	Title  string `json:"title"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
	Text   string `json:"text"`
}

// Summary is the top of the page.
type Summary struct {
	Headline  string     `json:"headline"`
	Stuck     []Stuck    `json:"stuck"`
	Obstacles []Obstacle `json:"obstacles"`
	Steps     []Step     `json:"steps"`
}

// Lab heads a column.
type Lab struct {
	Number int
	Title  string
}

// Labs are the columns.
func Labs(c *course.Course) []Lab {
	var labs []Lab
	for _, lab := range c.Labs {
		labs = append(labs, Lab{lab.Number, lab.Title})
	}
	return labs
}

// NewRow is the row of a learner.
func NewRow(l *room.Learner, labs []*course.Lab, rules room.Rules, now time.Time) Row {
	row := Row{ID: l.ID, Name: l.Name, Stuck: l.Stuck(rules, now) != nil}
	for _, lab := range labs {
		row.Cells = append(row.Cells, newCell(l, lab.Number))
	}
	return row
}

func newCell(l *room.Learner, lab int) Cell {
	c := Cell{Lab: lab, State: untried, Symbol: "·", Href: href(l, lab)}
	what := "not tried yet"
	if last := l.Last(lab); last != nil {
		c.State, c.Run = string(last.Verdict), last.Run
		c.Symbol, c.Text, what = words(last)
		what += ", " + count(l.Tries(lab), "try", "tries") + ", last at " + last.At.Local().Format("15:04")
	}
	c.Label = fmt.Sprintf("%s, lab %d: %s", l.Name, lab, what)
	return c
}

// words say a verdict in a symbol, in a word and in some more.
func words(a *room.Attempt) (symbol, word, more string) {
	switch {
	case a.Verdict == verdict.Pass:
		return "✓", "pass", "pass"
	case a.Verdict == verdict.Environment:
		return "!", "host", "the machine was at fault"
	case len(a.Red) > 0 && a.Red[0].ID == "build":
		return "✗", "build", "fail, the code does not compile"
	}
	return "✗", fmt.Sprintf("%d red", len(a.Red)), "fail, " + count(len(a.Red), "check", "checks") + " red"
}

func href(l *room.Learner, lab int) string { return fmt.Sprintf("/cell/%d/%d", l.ID, lab) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

const (
	// obstaclesShown and namesShown keep the top of the page short: an instructor acts on the first.
	obstaclesShown, namesShown = 3, 6
)

// NewSummary is the top of the page.
func NewSummary(s room.Summary, now time.Time) Summary {
	v := Summary{Headline: headline(s), Stuck: []Stuck{}, Obstacles: []Obstacle{}, Steps: []Step{}}
	for _, stuck := range s.Stuck {
		v.Stuck = append(v.Stuck, newStuck(stuck, now))
	}
	for _, o := range s.Obstacles[:min(len(s.Obstacles), obstaclesShown)] {
		v.Obstacles = append(v.Obstacles, newObstacle(o))
	}
	for _, step := range s.Steps {
		v.Steps = append(v.Steps, Step{
			Lab: step.Lab, Title: step.Title, Passed: step.Passed, Of: s.Learners,
			Text: fmt.Sprintf("%d of %d", step.Passed, s.Learners),
		})
	}
	return v
}

func headline(s room.Summary) string {
	if s.Learners == 0 {
		return "Nobody is here yet."
	}
	parts := []string{count(s.Learners, "learner", "learners")}
	if len(s.Stuck) > 0 {
		parts = append(parts, fmt.Sprintf("%d stuck", len(s.Stuck)))
	}
	if waiting := s.Learners - s.Started; waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", waiting))
	}
	if s.Started > 0 {
		parts = append(parts, fmt.Sprintf("half the room is at lab %d or further", s.Half))
	}
	if s.Done > 0 {
		parts = append(parts, fmt.Sprintf("%d done", s.Done))
	}
	return strings.Join(parts, " · ")
}

func newStuck(s *room.Stuck, now time.Time) Stuck {
	since := fmt.Sprintf("red for %s, %s", span(now.Sub(s.Since)), count(s.Tries, "try", "tries"))
	if s.Quiet {
		since += fmt.Sprintf("; not heard of for %s", span(now.Sub(s.Learner.Seen())))
	}
	return Stuck{
		Link:  Link{Text: fmt.Sprintf("%s, lab %d", s.Learner.Name, s.Lab), Href: href(s.Learner, s.Lab)},
		Check: s.Check.Title, Since: since, Quiet: s.Quiet,
	}
}

func newObstacle(o room.Obstacle) Obstacle {
	v := Obstacle{Count: count(len(o.Learners), "learner", "learners"), Check: fmt.Sprintf("Lab %d: %s", o.Lab, o.Check.Title)}
	for _, l := range o.Learners[:min(len(o.Learners), namesShown)] {
		v.Learners = append(v.Learners, Link{Text: l.Name, Href: href(l, l.Obstacle())})
	}
	if more := len(o.Learners) - namesShown; more > 0 {
		v.More = fmt.Sprintf("and %d more", more)
	}
	return v
}

// span is a time as people say it.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
