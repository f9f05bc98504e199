package schoolday

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// Try is one thing that a learner saves and has judged.
type Try struct {
	mutants.Answer
	// Last says that the learner stays with it: their day ends with a wrong answer.
	Last bool
}

// Plan is what each learner of a room of n tries, in the order in which they do. The same seed plans the same day.
//
// Every learner takes the labs one after the other. To each lab, a third of the room gives one wrong answer first, and
// never the same ones. Two of ten get stuck: one in the middle of the course, one at its end; what they have then is
// wrong, and stays so until it is graded.
func Plan(c *course.Course, all []*mutants.Mutant, n int, seed int64) [][]Try {
	plan := make([][]Try, n)
	for _, lab := range c.Labs {
		wrong := of(all, lab.Number)
		draw := rand.New(rand.NewPCG(uint64(seed), uint64(lab.Number)))
		draw.Shuffle(len(wrong), func(i, j int) { wrong[i], wrong[j] = wrong[j], wrong[i] })
		for i := range plan {
			if stuckAt(c, i) < lab.Number {
				continue
			}
			stuck := stuckAt(c, i) == lab.Number
			if stuck || errs(i, lab.Number) {
				plan[i] = append(plan[i], Try{Answer: mutants.Answer{Lab: lab.Number, Mutant: wrong[0]}, Last: stuck})
				wrong = append(wrong[1:], wrong[0])
			}
			if !stuck {
				plan[i] = append(plan[i], Try{Answer: mutants.Answer{Lab: lab.Number}})
			}
		}
	}
	return plan
}

func of(all []*mutants.Mutant, lab int) []*mutants.Mutant {
	return slices.DeleteFunc(slices.Clone(all), func(m *mutants.Mutant) bool { return m.Lab != lab })
}

// errs says whether learner i begins a lab with a wrong answer.
func errs(i, lab int) bool { return (i+lab)%3 == 0 }

// stuckAt is the lab that learner i never passes; beyond the last one for those who pass all.
func stuckAt(c *course.Course, i int) int {
	last := len(c.Labs)
	switch i % 10 {
	case 4:
		return (last + 1) / 2
	case 8:
		return last
	}
	return last + 1
}

// String is what the log says of a try.
func (t Try) String() string { return fmt.Sprintf("lab %d, %s", t.Lab, t.ID()) }
