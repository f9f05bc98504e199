package mutants

import (
	"math/rand/v2"
	"slices"

	"github.com/example/operator-lab/labs/internal/course"
)

// Answers are all mutants after the right answer of each lab, in the course's order.
func Answers(c *course.Course, all []*Mutant) []Answer {
	var answers []Answer
	for _, lab := range c.Labs {
		answers = append(answers, Answer{Lab: lab.Number})
		for _, m := range all {
			if m.Lab == lab.Number {
				answers = append(answers, Answer{Lab: m.Lab, Mutant: m})
			}
		}
	}
	return answers
}

// Gate is what every change is asked: for each lab its starter, the right answer and one wrong answer, always the same; for
// the last lab, the right answer on all labs.
func Gate(c *course.Course, all []*Mutant) []Answer {
	var answers []Answer
	var labs []int
	for _, lab := range c.Labs {
		solution := Answer{Lab: lab.Number}
		if lab.Number == len(c.Labs) {
			solution.Earlier = labs
		}
		labs = append(labs, lab.Number)
		answers = append(answers, Answer{Lab: lab.Number, Starter: true}, solution)
		if i := slices.IndexFunc(all, func(m *Mutant) bool { return m.Lab == lab.Number && m.Common }); i >= 0 {
			answers = append(answers, Answer{Lab: lab.Number, Mutant: all[i]})
		}
	}
	return answers
}

// Sample draws up to n wrong answers of each lab. The same seed draws the same ones of the same course.
func Sample(c *course.Course, all []*Mutant, n int, seed int64) []Answer {
	var answers []Answer
	for _, lab := range c.Labs {
		own := slices.DeleteFunc(slices.Clone(all), func(m *Mutant) bool { return m.Lab != lab.Number })
		// A lab draws for itself: an answer that is added to one does not change what others draw.
		draw := rand.New(rand.NewPCG(uint64(seed), uint64(lab.Number)))
		draw.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		own = own[:min(n, len(own))]
		slices.SortFunc(own, func(a, b *Mutant) int { return slices.Index(all, a) - slices.Index(all, b) })
		for _, m := range own {
			answers = append(answers, Answer{Lab: m.Lab, Mutant: m})
		}
	}
	return answers
}

// Repeat has each answer judged so often, all of them once before any of them again.
func Repeat(answers []Answer, times int) []Answer {
	var all []Answer
	for run := range times {
		for _, a := range answers {
			a.Run = run
			all = append(all, a)
		}
	}
	return all
}
