package progress_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// nine is when the lesson begins.
var nine = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return nine.Add(time.Duration(minutes) * time.Minute) }

// attempt reads "lab verdict +holds -red ?blocked", such as "2 fail +takes-name -says-name".
func attempt(run string, minutes int, text string) progress.Attempt {
	r := &verdict.Result{Run: run}
	var v string
	_, _ = fmt.Sscan(text, &r.Lab, &v)
	r.Verdict = verdict.Verdict(v)
	states := map[byte]verdict.State{'+': verdict.Passed, '-': verdict.Failed, '?': verdict.Blocked}
	for _, word := range strings.Fields(text)[2:] {
		if word == "build" {
			r.Build = &verdict.Build{Output: "x.go:1: no"}
			continue
		}
		r.Checks = append(r.Checks, verdict.Check{ID: word[1:], Title: "T " + word[1:], Lab: r.Lab, State: states[word[0]]})
	}
	return progress.NewAttempt(0, at(minutes), r)
}

// someone did one thing every minute, from nine on. A text that begins with = belongs to the run before.
func someone(name string, attempts ...string) *progress.Learner {
	l := progress.NewLearner(name)
	run, minute := "", -1
	for i, text := range attempts {
		same := strings.HasPrefix(text, "=")
		if !same {
			run = fmt.Sprint("run-", i)
			minute++
		}
		l.Add(attempt(run, minute, strings.TrimPrefix(text, "=")))
	}
	return l
}

func TestWhoIsStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		minute   int
		attempts []string
		want     string // lab check tries
	}{
		"nobody who has not begun":                  {600, nil, ""},
		"not before ten minutes":                    {9, []string{"1 fail -a"}, ""},
		"after ten minutes":                         {10, []string{"1 fail -a"}, "1 a 1"},
		"three tries":                               {3, []string{"1 fail -a", "1 fail -a", "1 fail -a"}, "1 a 3"},
		"two tries":                                 {9, []string{"1 fail -a", "1 fail -a"}, ""},
		"three tries at different checks":           {3, []string{"1 fail -a", "1 fail -b", "1 fail -c"}, ""},
		"green in between":                          {4, []string{"1 fail -a", "1 fail -a", "1 fail +a -b", "1 fail -a"}, ""},
		"not asked in between":                      {5, []string{"1 fail -a", "1 fail -a", "1 fail -b ?a", "1 fail -a"}, "1 a 3"},
		"does not compile in between":               {5, []string{"1 fail -a", "1 fail -a", "1 fail ?a build", "1 fail -a"}, "1 a 3"},
		"does not compile, three times":             {5, []string{"1 fail ?a build", "1 fail ?a build", "1 fail ?a build"}, "1 build 3"},
		"does not compile, but did in between":      {5, []string{"1 fail ?a build", "1 fail -a", "1 fail ?a build", "1 fail ?a build"}, ""},
		"the machine's fault is no try":             {3, []string{"1 fail -a", "1 fail -a", "1 environment -a"}, ""},
		"the machine's fault ends nothing":          {4, []string{"1 fail -a", "1 fail -a", "1 fail -a", "1 environment +a"}, "1 a 3"},
		"a pass ends it":                            {60, []string{"1 fail -a", "1 fail -a", "1 fail -a", "1 pass"}, ""},
		"went on with the next lab":                 {9, []string{"1 fail -a", "1 fail -a", "1 fail -a", "2 pass +b"}, ""},
		"fails the next lab, for the first time":    {9, []string{"1 fail -a", "1 fail -a", "1 fail -a", "2 fail -b"}, ""},
		"all labs in one run":                       {9, []string{"1 pass", "=2 fail -b", "1 pass", "=2 fail -b", "1 pass", "=2 fail -b"}, "2 b 3"},
		"another check for longer than the first":   {9, []string{"1 fail -b", "1 fail -b", "1 fail -a -b"}, "1 b 3"},
		"the check that explains the others":        {9, []string{"1 fail -a -b", "1 fail -a -b", "1 fail -a -b"}, "1 a 3"},
		"since the first red, not since the last":   {11, []string{"1 fail -b", "1 fail -a", "1 fail -a"}, "1 a 2"},
		"ten minutes count from when it turned red": {10, []string{"1 fail -b", "1 fail -a", "1 fail -a"}, ""},
	} {
		got := ""
		if s := someone("Ada", tc.attempts...).Stuck(at(tc.minute)); s != nil {
			got = fmt.Sprint(s.Lab, " ", s.Check.ID, " ", s.Tries)
		}
		if got != tc.want {
			t.Errorf("%s: stuck on %q, want %q", name, got, tc.want)
		}
	}
}

// A queue that was sent late must not turn yesterday's failure into today's state.
func TestAttemptsCountInTheOrderOfWhenTheyWere(t *testing.T) {
	l := progress.NewLearner("Ada")
	l.Add(attempt("later", 5, "1 pass"))
	l.Add(attempt("earlier", 1, "1 fail -a"))
	if !l.Passed(1) || l.Last(1).Run != "later" || !l.Seen().Equal(at(5)) {
		t.Errorf("passed %v, last %s, seen %v", l.Passed(1), l.Last(1).Run, l.Seen())
	}
}

// The machine that fails after a pass takes nothing away.
func TestAPassStaysWhenTheMachineFails(t *testing.T) {
	l := someone("Ada", "1 pass", "1 environment")
	if !l.Passed(1) || l.Last(1).Verdict != verdict.Environment {
		t.Errorf("passed %v, last %s", l.Passed(1), l.Last(1).Verdict)
	}
	if l.Add(attempt("broken", 9, "1 fail -a")); l.Passed(1) {
		t.Error("passes still, after a failure of the learner's own")
	}
}

func small(t *testing.T) *course.Course {
	t.Helper()
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheRoomInShort(t *testing.T) {
	c := small(t)
	learners := []*progress.Learner{
		someone("Ada", "1 fail -a -b", "1 fail -a -b", "1 fail -a -b"),
		someone("Bob", "1 pass", "2 fail -c", "2 fail -c", "2 fail -c"),
		someone("Cyd", "1 pass", "2 pass", "3 pass"),
		someone("Dan", "2 fail -c"),
		someone("Eve"),
	}
	learners[0].Add(attempt("gone home", -600, "1 fail -a"))
	s := progress.Summarize(learners, c.Labs, at(5))
	if s.Learners != 5 || s.Started != 4 {
		t.Errorf("%d learners, %d started", s.Learners, s.Started)
	}
	steps := []progress.Step{{1, "Say hello", 2}, {2, "Say whom", 1}, {3, "Shout", 1}}
	if diff := cmp.Diff(steps, s.Steps); diff != "" {
		t.Error(diff)
	}
	if got := names(s.Stuck); got != "Ada Bob" {
		t.Errorf("stuck: %s; the longest comes first", got)
	}
	if len(s.Obstacles) != 2 || s.Obstacles[0].Check.ID != "c" || len(s.Obstacles[0].Learners) != 2 || s.Obstacles[1].Check.ID != "a" {
		t.Errorf("what stops people: %+v", s.Obstacles)
	}
	if later := progress.Summarize(learners[:2], c.Labs, at(62)); names(later.Stuck) != "Bob" {
		t.Errorf("stuck, 60 and 59 minutes after their last tries: %s; who went home is not", names(later.Stuck))
	}
	if empty := progress.Summarize(nil, c.Labs, nine); empty.Learners != 0 || len(empty.Steps) != 3 {
		t.Errorf("an empty room: %+v", empty)
	}
}

func names(stuck []*progress.Stuck) string {
	var all []string
	for _, s := range stuck {
		all = append(all, s.Learner.Name)
	}
	return strings.Join(all, " ")
}
