package page_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/board/page"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)

func small(t *testing.T) *course.Course {
	t.Helper()
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ago(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

func red(lab int, run string, ids ...string) *verdict.Result {
	r := &verdict.Result{Lab: lab, Run: run, Verdict: verdict.Fail}
	for _, id := range ids {
		r.Checks = append(r.Checks, verdict.Check{ID: id, Title: "T " + id, Lab: lab, State: verdict.Failed})
	}
	return r
}

// ada has passed lab 1, failed lab 2 twice, and at lab 3 her machine failed.
func ada() *room.Learner {
	l := room.NewLearner(7, "Ada")
	l.Add(room.NewAttempt(1, ago(50), &verdict.Result{Lab: 1, Run: "r1", Verdict: verdict.Pass}))
	l.Add(room.NewAttempt(2, ago(40), red(2, "r2", "takes-name")))
	l.Add(room.NewAttempt(3, ago(30), red(2, "r3", "takes-name", "says-name")))
	l.Add(room.NewAttempt(4, ago(20), &verdict.Result{Lab: 3, Run: "r4", Verdict: verdict.Environment}))
	return l
}

// Whoever sees no colour reads the symbol and the word; whoever sees nothing hears the label.
func TestACellSaysItsStateInThreeWays(t *testing.T) {
	row := page.NewRow(ada(), small(t).Labs, room.DefaultRules, noon)
	want := []page.Cell{
		{Lab: 1, State: "pass", Symbol: "✓", Text: "pass", Label: "Ada, lab 1: pass, 1 try, last at 11:10", Href: "/cell/7/1", Run: "r1"},
		{Lab: 2, State: "fail", Symbol: "✗", Text: "2 red", Label: "Ada, lab 2: fail, 2 checks red, 2 tries, last at 11:30", Href: "/cell/7/2", Run: "r3"},
		{Lab: 3, State: "environment", Symbol: "!", Text: "host", Label: "Ada, lab 3: the machine was at fault, 0 tries, last at 11:40", Href: "/cell/7/3", Run: "r4"},
	}
	if diff := cmp.Diff(want, row.Cells); diff != "" || !row.Stuck || row.Name != "Ada" {
		t.Errorf("stuck %v, %s", row.Stuck, diff)
	}
	build := room.NewLearner(8, "Bob")
	r := red(1, "b1")
	r.Build = &verdict.Build{}
	build.Add(room.NewAttempt(5, noon, r))
	cells := page.NewRow(build, small(t).Labs, room.DefaultRules, noon).Cells
	if cells[0].Text != "build" || cells[1].State != "untried" || cells[1].Label != "Bob, lab 2: not tried yet" {
		t.Errorf("%+v", cells)
	}
}

func TestTheTopSaysWhoAndOnWhat(t *testing.T) {
	c := small(t)
	learners := []*room.Learner{ada(), room.NewLearner(9, "Eve")}
	for i := range 7 {
		l := room.NewLearner(int64(20+i), "n"+string(rune('0'+i)))
		l.Add(room.NewAttempt(int64(20+i), ago(1), red(1, "x", "says-hello")))
		learners = append(learners, l)
	}
	got := page.NewSummary(room.Summarize(learners, c.Labs, room.DefaultRules, noon), noon)
	if got.Headline != "9 learners · 1 stuck · 1 not started · half the room is at lab 1 or further" {
		t.Error(got.Headline)
	}
	stuck := []page.Stuck{{Link: page.Link{Text: "Ada, lab 2", Href: "/cell/7/2"}, Check: "T takes-name", Since: "red for 40 min, 2 tries"}}
	if diff := cmp.Diff(stuck, got.Stuck); diff != "" {
		t.Error(diff)
	}
	if o := got.Obstacles; len(o) != 2 || o[0].Count != "7 learners" || o[0].Check != "Lab 1: T says-hello" || len(o[0].Learners) != 6 || o[0].More != "and 1 more" || o[1].More != "" {
		t.Errorf("%+v", o)
	}
	if s := got.Steps[0]; s.Passed != 1 || s.Of != 9 || s.Text != "1 of 9" {
		t.Errorf("%+v", s)
	}
	later := noon.Add(3 * time.Hour)
	if s := page.NewSummary(room.Summarize(learners[:1], c.Labs, room.DefaultRules, later), later).Stuck[0]; s.Since != "red for 3 h, 2 tries; not heard of for 3 h" || !s.Quiet {
		t.Errorf("three hours later: %+v", s)
	}
}

func TestADetailHasTheReportAndTheHistory(t *testing.T) {
	c := small(t)
	r := red(2, "r3", "takes-name")
	r.Checks[0].Expected, r.Checks[0].Seen = "a name", "none"
	r.Checks = append(r.Checks,
		verdict.Check{ID: "says-name", Title: "T says", Lab: 2, State: verdict.Blocked, BlockedBy: "takes-name"},
		verdict.Check{ID: "says-hello", Title: "T hello", Lab: 1, State: verdict.Passed})
	d := page.NewDetail(c, ada(), c.Labs[1], 3, r)
	checks := []page.Check{
		{State: "fail", Symbol: "✗", Title: "T takes-name", Note: "expected a name\nsaw none"},
		{State: "blocked", Symbol: "·", Title: "T says", Note: "waits for takes-name"},
		{State: "pass", Symbol: "✓", Title: "T hello (lab 1 again)"},
	}
	if diff := cmp.Diff(checks, d.Checks); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(d.Report, "make hint-2") || !strings.HasPrefix(d.Headline, "✗ Fail, 2 checks red.") {
		t.Errorf("%s\n%s", d.Headline, d.Report)
	}
	if h := d.History; len(h) != 2 || h[0].Href != "/cell/7/2?result=3" || !h[0].Shown || h[1].Shown || h[1].Note != "1 red: T takes-name" {
		t.Errorf("%+v", h)
	}
	var html bytes.Buffer
	if err := d.Render(&html); err != nil || strings.Count(html.String(), "aria-current") != 1 {
		t.Errorf("%v\n%s", err, &html)
	}
}
