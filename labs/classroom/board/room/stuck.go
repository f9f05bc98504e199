package room

import (
	"cmp"
	"slices"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// quietAfter is how long somebody may be silent and still be thought at work. Later they have gone to
// lunch or home, and those who sit there and struggle come first.
const quietAfter = time.Hour

// Stuck is somebody who does not get on.
type Stuck struct {
	Learner *Learner
	Lab     int
	Check   Red
	// Tries is how many verdicts in a row the check was red in, Since when the first of them was.
	Tries int
	Since time.Time
	// Quiet: nothing was heard of the learner for an hour.
	Quiet bool
}

// Stuck finds what the learner has been stuck on for longest, nil if they are not. Of several checks the
// one counts that explains the others, unless only another one has been red for so long.
func (l *Learner) Stuck(rules Rules, now time.Time) *Stuck {
	for _, current := range l.current() {
		for _, red := range current.Red {
			tries, since := l.streak(current.Lab, red.ID)
			long := rules.Red > 0 && now.Sub(since) >= rules.Red
			often := rules.Tries > 0 && tries >= rules.Tries
			if long || often {
				return &Stuck{
					Learner: l, Lab: current.Lab, Check: red, Tries: tries, Since: since,
					Quiet: now.Sub(l.Seen()) >= quietAfter,
				}
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
	// Tried is how many have tried it, whether they passed or not.
	Tried int
}

// Summary is what the instructor reads first.
type Summary struct {
	// Stuck are those at work first, then who has been so for longest.
	Stuck []*Stuck
	// Obstacles: what stops most people comes first. Of each learner only the check counts that their
	// report begins with: it explains their others.
	Obstacles []Obstacle
	Steps     []Step
	// Learners is how many there are, Started how many have tried anything, Done how many passed all labs.
	Learners, Started, Done int
	// Half of the room is at this lab or further.
	Half int
}

// Summarize looks at the whole room.
func Summarize(learners []*Learner, labs []*course.Lab, rules Rules, now time.Time) Summary {
	s := Summary{Learners: len(learners), Steps: make([]Step, len(labs)), Obstacles: obstacles(learners)}
	var at []int
	for _, l := range learners {
		if stuck := l.Stuck(rules, now); stuck != nil {
			s.Stuck = append(s.Stuck, stuck)
		}
		if !l.Seen().IsZero() {
			s.Started++
		}
		at = append(at, l.At(labs))
	}
	slices.SortStableFunc(s.Stuck, func(a, b *Stuck) int { return cmp.Or(last(a.Quiet, b.Quiet), a.Since.Compare(b.Since)) })
	for i, lab := range labs {
		s.Steps[i] = step(learners, lab)
	}
	s.Done = done(learners, labs)
	if slices.Sort(at); len(at) > 0 {
		s.Half = at[len(at)/2]
	}
	return s
}

// last orders what is false before what is true.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func step(learners []*Learner, lab *course.Lab) Step {
	s := Step{Lab: lab.Number, Title: lab.Title}
	for _, l := range learners {
		if l.Passed(lab.Number) {
			s.Passed++
		}
		if l.Tries(lab.Number) > 0 {
			s.Tried++
		}
	}
	return s
}

func done(learners []*Learner, labs []*course.Lab) int {
	n := 0
	for _, l := range learners {
		if !slices.ContainsFunc(labs, func(lab *course.Lab) bool { return !l.Passed(lab.Number) }) {
			n++
		}
	}
	return n
}

func obstacles(learners []*Learner) []Obstacle {
	found := map[string]*Obstacle{}
	for _, l := range learners {
		lab, red, ok := l.obstacle()
		if !ok {
			continue
		}
		o := found[red.ID]
		if o == nil {
			o = &Obstacle{Check: red, Lab: lab}
			found[red.ID] = o
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

// Obstacle is the lab in which the learner is stopped, 0 if nothing stops them.
func (l *Learner) Obstacle() int {
	lab, _, _ := l.obstacle()
	return lab
}

// obstacle is what the learner's latest report begins with.
func (l *Learner) obstacle() (lab int, red Red, ok bool) {
	for _, a := range l.current() {
		if len(a.Red) > 0 && a.Verdict == verdict.Fail {
			return a.Lab, a.Red[0], true
		}
	}
	return 0, Red{}, false
}
