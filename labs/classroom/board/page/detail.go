package page

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Detail is what a cell opens: one verdict, its checks, the report that the learner saw, and the verdicts
// before it.
type Detail struct {
	Title string `json:"title"`
	// State is that of a cell.
	State    string    `json:"state"`
	Headline string    `json:"headline"`
	Checks   []Check   `json:"checks"`
	Report   string    `json:"report"`
	History  []History `json:"history"`
}

// Check is one check of a detail.
type Check struct {
	State  string `json:"state"`
	Symbol string `json:"symbol"`
	Title  string `json:"title"`
	// Note says why it does not hold, "" when it does.
	Note string `json:"note"`
}

// History is one line of the history, the latest first.
type History struct {
	Link
	State  string `json:"state"`
	Symbol string `json:"symbol"`
	Note   string `json:"note"`
	// Shown: this is the one that the detail is about.
	Shown bool `json:"shown"`
}

// NewDetail opens the cell of a learner and a lab. result is one of the learner's on that lab, with the
// store's id; nil when there is none yet.
func NewDetail(c *course.Course, l *room.Learner, lab *course.Lab, id int64, result *verdict.Result) Detail {
	d := Detail{
		Title: fmt.Sprintf("%s, lab %d: %s", l.Name, lab.Number, lab.Title), State: untried,
		Headline: "Not tried yet.", Checks: []Check{}, History: history(l, lab.Number, id),
	}
	if result == nil {
		return d
	}
	d.State = string(result.Verdict)
	for _, a := range l.Attempts(lab.Number) {
		if a.ID == id {
			symbol, _, more := words(&a)
			d.Headline = fmt.Sprintf("%s %s. %s, after %.0f s on %s.", symbol, capital(more), stamp(a.At), result.Seconds, cluster(result))
		}
	}
	for _, check := range result.Checks {
		d.Checks = append(d.Checks, newCheck(result, check))
	}
	var report bytes.Buffer
	verdict.Print(&report, result, lab, c.Hint)
	d.Report = report.String()
	return d
}

func cluster(r *verdict.Result) string {
	if r.Cluster.Provider == "" {
		return "no cluster"
	}
	return strings.TrimSpace(r.Cluster.Provider + " " + r.Cluster.Version)
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// stamp is a time, with its day unless that is today.
func stamp(t time.Time) string {
	t = t.Local()
	if y, d := t.Year(), t.YearDay(); y == time.Now().Year() && d == time.Now().YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

func newCheck(r *verdict.Result, c verdict.Check) Check {
	v := Check{State: string(c.State), Symbol: "✓", Title: c.Title}
	if c.Lab != 0 && c.Lab != r.Lab {
		v.Title += fmt.Sprintf(" (lab %d again)", c.Lab)
	}
	switch c.State {
	case verdict.Failed:
		v.Symbol, v.Note = "✗", strings.TrimSpace("expected "+c.Expected+"\nsaw "+c.Seen)
	case verdict.Blocked:
		v.Symbol, v.Note = "·", "waits for "+c.BlockedBy
	case verdict.NotChecked:
		v.Symbol, v.Note = "–", "not checked: this cluster cannot tell"
	}
	return v
}

func history(l *room.Learner, lab int, shown int64) []History {
	all := []History{}
	of := l.Attempts(lab)
	for i := len(of) - 1; i >= 0; i-- {
		a := &of[i]
		symbol, word, _ := words(a)
		h := History{
			Link:  Link{Text: stamp(a.At), Href: fmt.Sprintf("%s?result=%d", href(l, lab), a.ID)},
			State: string(a.Verdict), Symbol: symbol, Note: word, Shown: a.ID == shown,
		}
		if len(a.Red) > 0 {
			h.Note += ": " + a.Red[0].Title
		}
		all = append(all, h)
	}
	return all
}
