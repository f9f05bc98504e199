// Package progress says how the learners of a classroom are doing: who is where, who is stuck, and on what. It is arithmetic on
// verdicts, and keeps nothing.
package progress

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// Red is a check that failed.
type Red struct{ ID, Title string }

// buildRed stands for the checks of code that does not compile.
var buildRed = Red{ID: "build", Title: "The code does not compile"}

// Attempt is what the board remembers of one verdict.
type Attempt struct {
	// ID tells the learner's attempts apart.
	ID      int64
	Run     string
	Lab     int // below zero for a task
	At      time.Time
	Verdict verdict.Verdict
	// Red are the checks that failed, the one that explains the others first.
	Red []Red
	// passed are the checks that hold, by id.
	passed map[string]bool
}

// NewAttempt digests a result.
func NewAttempt(id int64, at time.Time, r *verdict.Result) Attempt {
	a := Attempt{ID: id, Run: r.Run, Lab: r.Lab, At: at, Verdict: r.Verdict, passed: map[string]bool{}}
	if r.Build != nil {
		a.Red = append(a.Red, buildRed)
	}
	if first := r.First(); first != nil {
		a.Red = append(a.Red, Red{first.ID, first.Title})
	}
	for _, c := range r.Checks {
		switch {
		case c.State == verdict.Passed:
			a.passed[c.ID] = true
		case c.State == verdict.Failed && !a.red(c.ID):
			a.Red = append(a.Red, Red{c.ID, c.Title})
		}
	}
	if r.Build == nil {
		a.passed[buildRed.ID] = true // whatever was checked has been compiled
	}
	return a
}

func (a *Attempt) red(id string) bool {
	return slices.ContainsFunc(a.Red, func(r Red) bool { return r.ID == id })
}

// counts says whether the verdict is the learner's and not their machine's.
func (a *Attempt) counts() bool { return a.Verdict != verdict.Environment }

// Learner is one row of the board.
type Learner struct {
	Name string
	// attempts by lab, the oldest first.
	attempts map[int][]Attempt
}

// NewLearner is somebody who has not tried anything yet.
func NewLearner(name string) *Learner {
	return &Learner{Name: name, attempts: map[int][]Attempt{}}
}

// Add adds an attempt, in the order of when they were and not of when the board heard of them.
func (l *Learner) Add(a Attempt) {
	of := l.attempts[a.Lab]
	i, _ := slices.BinarySearchFunc(of, a, func(a, b Attempt) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	l.attempts[a.Lab] = slices.Insert(of, i, a)
}

// Last is the latest attempt on a lab, nil if there is none.
func (l *Learner) Last(lab int) *Attempt {
	of := l.attempts[lab]
	if len(of) == 0 {
		return nil
	}
	return &of[len(of)-1]
}

// Passed says whether the last verdict of the learner's own on a lab is a pass. A machine that failed afterwards does not take it away.
func (l *Learner) Passed(lab int) bool {
	last := l.lastOwn(lab)
	return last != nil && last.Verdict == verdict.Pass
}

// Seen is when the learner was last heard of; zero if never.
func (l *Learner) Seen() time.Time {
	var seen time.Time
	for _, of := range l.attempts {
		if last := of[len(of)-1].At; last.After(seen) {
			seen = last
		}
	}
	return seen
}

// current are the learner's own verdicts of their latest run that has any: where they are working. One run can judge several labs.
func (l *Learner) current() []*Attempt {
	var latest []*Attempt
	for _, lab := range slices.Sorted(maps.Keys(l.attempts)) {
		a := l.lastOwn(lab)
		switch {
		case a == nil:
		case len(latest) == 0 || a.Run != latest[0].Run && a.At.After(latest[0].At):
			latest = []*Attempt{a}
		case a.Run == latest[0].Run:
			latest = append(latest, a)
		}
	}
	return latest
}

func (l *Learner) lastOwn(lab int) *Attempt {
	for _, a := range slices.Backward(l.attempts[lab]) {
		if a.counts() {
			return &a
		}
	}
	return nil
}
