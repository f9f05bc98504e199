package progress

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Somebody is stuck when the same check has been red for stuckAfter, or for stuckTries verdicts in a row.
const (
	stuckAfter = 10 * time.Minute
	stuckTries = 3
)

// quietAfter is how long somebody may be silent and still be thought at work. Later they have gone to lunch or home.
const quietAfter = time.Hour

// Stuck is somebody who does not get on.
type Stuck struct {
	Learner *Learner
	Lab     int
	Check   Red
	// Tries is how many verdicts in a row the check was red in, Since when the first of them was.
	Tries int
	Since time.Time
}

// Stuck finds what the learner has been stuck on for longest, nil if they are not. Of several checks the
// one counts that explains the others, unless only another one has been red for so long.
func (l *Learner) Stuck(now time.Time) *Stuck {
	if now.Sub(l.Seen()) >= quietAfter {
		return nil
	}
	for _, current := range l.current() {
		for _, red := range current.Red {
			tries, since := l.streak(current.Lab, red.ID)
			if now.Sub(since) >= stuckAfter || tries >= stuckTries {
				return &Stuck{Learner: l, Lab: current.Lab, Check: red, Tries: tries, Since: since}
			}
		}
	}
	return nil
}

// streak is how many of the learner's latest verdicts in a row the check was red in, and since when. A run in
// which nobody asked the check ends nothing and adds nothing.
func (l *Learner) streak(lab int, check string) (tries int, since time.Time) {
	for _, a := range slices.Backward(l.attempts[lab]) {
		switch {
		case !a.counts():
		case a.red(check):
			tries, since = tries+1, a.At
		case a.passed[check] || a.Verdict == verdict.Pass:
			return tries, since
		}
	}
	return tries, since
}

// Obstacle is a check that keeps people from getting on.
type Obstacle struct {
	Check Red
	// Lab whose verdict it turns red, the earliest if there are several.
	Lab int
	// Learners who are at it now, by name.
	Learners []*Learner
}

// Step is how far the room is with one lab.
type Step struct {
	Lab    int
	Title  string
	Passed int
}

// Summary is what the instructor reads first.
type Summary struct {
	// Stuck: who has been so for longest comes first.
	Stuck []*Stuck
	// Obstacles: what stops most people comes first. Of each learner only the check counts that their
	// report begins with: it explains their others.
	Obstacles []Obstacle
	Steps     []Step
	// Learners is how many there are, Started how many have tried anything.
	Learners, Started int
}

// Summarize looks at the whole room.
func Summarize(learners []*Learner, labs []*course.Lab, now time.Time) Summary {
	s := Summary{Learners: len(learners), Obstacles: obstacles(learners)}
	for _, lab := range labs {
		s.Steps = append(s.Steps, Step{Lab: lab.Number, Title: lab.Title})
	}
	for _, l := range learners {
		if stuck := l.Stuck(now); stuck != nil {
			s.Stuck = append(s.Stuck, stuck)
		}
		if !l.Seen().IsZero() {
			s.Started++
		}
		for i, lab := range labs {
			if l.Passed(lab.Number) {
				s.Steps[i].Passed++
			}
		}
	}
	slices.SortStableFunc(s.Stuck, func(a, b *Stuck) int { return a.Since.Compare(b.Since) })
	return s
}

func obstacles(learners []*Learner) []Obstacle {
	found := map[string]*Obstacle{}
	for _, l := range learners {
		lab, red := l.Obstacle()
		if lab == 0 {
			continue
		}
		key := fmt.Sprint(min(lab, 0), red.ID) // tasks may have checks of the same id
		o := found[key]
		if o == nil {
			o = &Obstacle{Check: red, Lab: lab}
			found[key] = o
		}
		o.Lab = min(o.Lab, lab)
		o.Learners = append(o.Learners, l)
	}
	var all []Obstacle
	for _, o := range found {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Obstacle) int {
		return cmp.Or(cmp.Compare(len(b.Learners), len(a.Learners)), cmp.Compare(a.Lab, b.Lab), cmp.Compare(a.Check.ID, b.Check.ID))
	})
	return all
}

// Obstacle is what the learner's latest report begins with, and its lab; 0 if nothing stops them.
func (l *Learner) Obstacle() (lab int, red Red) {
	for _, a := range l.current() {
		if len(a.Red) > 0 && a.Verdict == verdict.Fail {
			return a.Lab, a.Red[0]
		}
	}
	return 0, Red{}
}
