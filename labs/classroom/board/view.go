package board

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// untried is the state of a cell without a verdict; the others are verdicts.
const untried = "untried"

// The page, as its template has it.
type (
	boardView struct {
		Headline, Stamp, Address, Key string
		Labs                          []string
		Rows                          []row
		Stuck                         []line
		Obstacles                     []obstacle
		Steps                         []progress.Step
		Learners                      int
	}
	row struct {
		Name  string
		Stuck bool
		Cells []cell
	}
	// cell is a learner's last verdict on a lab, in a symbol, in a word, and in a sentence for who does not see it.
	cell struct {
		Lab, State, Symbol, Text, Label, Href string
	}
	// line is somebody, and what there is to say.
	line     struct{ Text, Href, More, Since string }
	obstacle struct {
		Count, Check string
		Learners     []line
	}
	// detailView is what a cell opens: its verdict, and the report that the learner saw.
	detailView struct {
		cell
		Report string
	}
)

func (b *Board) view(all []*progress.Learner, now time.Time) boardView {
	s := progress.Summarize(all, b.Course.Labs, now)
	v := boardView{
		Headline: headline(s), Stamp: now.Local().Format("2006-01-02 15:04:05"), Address: b.Address, Key: b.Key,
		Steps: s.Steps, Learners: s.Learners,
	}
	shown := slices.DeleteFunc(slices.Clone(b.Course.Tasks), func(t *course.Lab) bool { // what nobody tried
		return !slices.ContainsFunc(all, func(l *progress.Learner) bool { return l.Last(t.Number) != nil })
	})
	shown = slices.Concat(b.Course.Labs, shown)
	for _, lab := range shown {
		v.Labs = append(v.Labs, course.Name(lab.Number)+" "+lab.Title)
	}
	for _, l := range all {
		row := row{Name: l.Name, Stuck: l.Stuck(now) != nil}
		for _, lab := range shown {
			row.Cells = append(row.Cells, newCell(l, lab.Number))
		}
		v.Rows = append(v.Rows, row)
	}
	for _, stuck := range s.Stuck {
		v.Stuck = append(v.Stuck, newStuck(stuck, now))
	}
	for _, o := range s.Obstacles[:min(len(s.Obstacles), obstaclesShown)] {
		v.Obstacles = append(v.Obstacles, newObstacle(o))
	}
	return v
}

// obstaclesShown keeps the top of the page short: an instructor acts on the first.
const obstaclesShown = 3

func newCell(l *progress.Learner, lab int) cell {
	c := cell{Lab: strings.TrimPrefix(course.Name(lab), "lab "), State: untried, Symbol: "·", Href: href(l, lab)}
	what := "not tried yet"
	if last := l.Last(lab); last != nil {
		c.State = string(last.Verdict)
		c.Symbol, c.Text, what = words(last)
		what += ", last at " + last.At.Local().Format("15:04")
	}
	c.Label = fmt.Sprintf("%s, %s: %s", l.Name, course.Name(lab), what)
	return c
}

// words say a verdict in a symbol, in a word and in some more.
func words(a *progress.Attempt) (symbol, word, more string) {
	switch {
	case a.Verdict == verdict.Pass:
		return "✓", "pass", "pass"
	case a.Verdict == verdict.Environment:
		return "!", "environment", "the machine was at fault"
	case len(a.Red) > 0 && a.Red[0].ID == "build":
		return "✗", "build", "fail, the code does not compile"
	}
	return "✗", fmt.Sprintf("%d red", len(a.Red)), "fail, " + cli.Count(len(a.Red), "check") + " red"
}

func href(l *progress.Learner, lab int) string {
	return fmt.Sprintf("/cell/%s/%d", url.PathEscape(l.Name), lab)
}

func headline(s progress.Summary) string {
	if s.Learners == 0 {
		return "Nobody is here yet."
	}
	parts := []string{cli.Count(s.Learners, "learner")}
	if len(s.Stuck) > 0 {
		parts = append(parts, fmt.Sprintf("%d stuck", len(s.Stuck)))
	}
	if waiting := s.Learners - s.Started; waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", waiting))
	}
	return strings.Join(parts, " · ")
}

func newStuck(s *progress.Stuck, now time.Time) line {
	return line{
		Text: s.Learner.Name + ", " + course.Name(s.Lab), Href: href(s.Learner, s.Lab), More: s.Check.Title,
		Since: fmt.Sprintf("red for %s, %s", duration.HumanDuration(now.Sub(s.Since)), cli.Count(s.Tries, "attempt")),
	}
}

func newObstacle(o progress.Obstacle) obstacle {
	v := obstacle{Count: cli.Count(len(o.Learners), "learner"), Check: course.Name(o.Lab) + ": " + o.Check.Title}
	for _, l := range o.Learners {
		lab, _ := l.Obstacle()
		v.Learners = append(v.Learners, line{Text: l.Name, Href: href(l, lab)})
	}
	return v
}
