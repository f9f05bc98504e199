// Package schoolday plays a day in a classroom: a room is set up, simulated learners work through all labs from their
// handouts, with right and wrong answers, a node dies and the container engine is restarted in the middle, the board is
// looked at in a browser after each step, everything is graded, and nothing is left behind.
//
// It does what people do: it runs make targets of the course, the learners' in checkouts and shells of their own. What
// has to be true at each step is said by the learners' own results and by the wrong answers, which name the check that
// catches them. The first thing that is not true ends the day.
package schoolday
