package room

import "github.com/example/operator-lab/labs/internal/course"

// Following is how the room follows its instructor to a lab.
type Following struct {
	// There are those who work on that lab or on a later one, or have joined it; Stay those who said that they do not
	// come; Waiting all others. Each in the order of the learners.
	There, Stay, Waiting []*Learner
}

// Follow looks who is at a lab. joined and stay are those who said so, by id; somebody who is there by their own work
// need not say anything.
func Follow(learners []*Learner, labs []*course.Lab, lab int, joined, stay map[int64]bool) Following {
	var f Following
	for _, l := range learners {
		switch {
		case joined[l.ID] || l.At(labs) >= lab:
			f.There = append(f.There, l)
		case stay[l.ID]:
			f.Stay = append(f.Stay, l)
		default:
			f.Waiting = append(f.Waiting, l)
		}
	}
	return f
}
