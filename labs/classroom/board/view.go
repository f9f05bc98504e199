package board

import (
	"bytes"
	"fmt"
	"net/url"
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
		Labs                          []*course.Lab
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
		Lab                              int
		State, Symbol, Text, Label, Href string
	}
	// line is somebody, or an attempt, and what there is to say.
	line struct {
		Text, Href, State, Symbol, More, Since string
		Quiet, Shown                           bool
	}
	obstacle struct {
		Count, Check string
		Learners     []line
	}
	detailView struct {
		Title, State, Headline, Report string
		Checks, History                []line
	}
)

func (b *Board) view(all []*progress.Learner, now time.Time) boardView {
	s := progress.Summarize(all, b.Course.Labs, now)
	v := boardView{
		Headline: headline(s), Stamp: now.Local().Format("2006-01-02 15:04:05"), Address: b.Address, Key: b.Key,
		Labs: b.Course.Labs, Steps: s.Steps, Learners: s.Learners,
	}
	for _, l := range all {
		row := row{Name: l.Name, Stuck: l.Stuck(now) != nil}
		for _, lab := range b.Course.Labs {
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
	c := cell{Lab: lab, State: untried, Symbol: "·", Href: href(l, lab)}
	what := "not tried yet"
	if last := l.Last(lab); last != nil {
		c.State = string(last.Verdict)
		c.Symbol, c.Text, what = words(last)
		what += ", last at " + last.At.Local().Format("15:04")
	}
	c.Label = fmt.Sprintf("%s, lab %d: %s", l.Name, lab, what)
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
	if s.Done > 0 {
		parts = append(parts, fmt.Sprintf("%d done", s.Done))
	}
	return strings.Join(parts, " · ")
}

func newStuck(s *progress.Stuck, now time.Time) line {
	since := fmt.Sprintf("red for %s, %s", duration.HumanDuration(now.Sub(s.Since)), cli.Count(s.Tries, "attempt"))
	if s.Quiet {
		since += fmt.Sprintf("; not heard of for %s", duration.HumanDuration(now.Sub(s.Learner.Seen())))
	}
	return line{
		Text: fmt.Sprintf("%s, lab %d", s.Learner.Name, s.Lab), Href: href(s.Learner, s.Lab), More: s.Check.Title, Since: since, Quiet: s.Quiet,
	}
}

func newObstacle(o progress.Obstacle) obstacle {
	v := obstacle{Count: cli.Count(len(o.Learners), "learner"), Check: fmt.Sprintf("Lab %d: %s", o.Lab, o.Check.Title)}
	for _, l := range o.Learners {
		lab, _ := l.Obstacle()
		v.Learners = append(v.Learners, line{Text: l.Name, Href: href(l, lab)})
	}
	return v
}

// detail is what a cell opens: one verdict, its checks, the report that the learner saw, and the verdicts before it. shown and result
// are nil when there is none yet.
func (b *Board) detail(l *progress.Learner, lab *course.Lab, shown *progress.Attempt, result *verdict.Result) detailView {
	d := detailView{Title: fmt.Sprintf("%s, lab %d: %s", l.Name, lab.Number, lab.Title), State: untried, Headline: "Not tried yet."}
	if shown == nil {
		return d
	}
	symbol, _, more := words(shown)
	on := strings.TrimSpace(result.Cluster.Provider + " " + result.Cluster.Version)
	if on == "" {
		on = "no cluster"
	}
	d.State = string(result.Verdict)
	d.Headline = fmt.Sprintf("%s %s. %s, after %.0f s on %s.", symbol, strings.ToUpper(more[:1])+more[1:], stamp(shown.At), result.Seconds, on)
	for _, c := range result.Checks {
		d.Checks = append(d.Checks, newCheck(result, c))
	}
	var report bytes.Buffer
	verdict.Print(&report, result, lab, b.Course.Hint)
	d.Report = report.String()
	for _, a := range l.Attempts(lab.Number) {
		symbol, word, _ := words(&a)
		h := line{
			Text: stamp(a.At), Href: fmt.Sprintf("%s?result=%d", href(l, lab.Number), a.ID), State: string(a.Verdict), Symbol: symbol,
			More: word, Shown: a.ID == shown.ID,
		}
		if len(a.Red) > 0 {
			h.More += ": " + a.Red[0].Title
		}
		d.History = append([]line{h}, d.History...)
	}
	return d
}

// stamp is a time, with its day unless that is today.
func stamp(t time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func newCheck(r *verdict.Result, c verdict.Check) line {
	v := line{State: string(c.State), Symbol: "✓", Text: c.Title}
	if c.Lab != 0 && c.Lab != r.Lab {
		v.Text += fmt.Sprintf(" (lab %d again)", c.Lab)
	}
	switch c.State {
	case verdict.Failed:
		v.Symbol, v.More = "✗", strings.TrimSpace("expected "+c.Expected+"\nsaw "+c.Seen)
	case verdict.Blocked:
		v.Symbol, v.More = "·", "waits for "+c.BlockedBy
	case verdict.NotChecked:
		v.Symbol, v.More = "–", "not checked: this cluster cannot tell"
	}
	return v
}
