package mutants_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// This is about the course itself, not about this package's code.
func TestTheWrongAnswersOfTheCourseAreInOrder(t *testing.T) {
	c := coursetest.Load(t, "../../..")
	problems, err := mutants.Lint(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// Every change is asked the same: of each lab the starter, the solution and one wrong answer; and the last solution on all
// labs.
func TestTheGateAsksEveryLab(t *testing.T) {
	c := coursetest.Load(t, "../../..")
	all, err := mutants.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	answers := mutants.Gate(c, all)
	if want := 3 * len(c.Labs); len(answers) != want {
		t.Fatalf("%d answers, want %d", len(answers), want)
	}
	for i, lab := range c.Labs {
		own := answers[3*i : 3*i+3]
		if !own[0].Starter || own[1].Mutant != nil || own[1].Starter || own[2].Mutant == nil {
			t.Errorf("lab %d: %+v", lab.Number, own)
		}
		for _, a := range own {
			if a.Lab != lab.Number {
				t.Errorf("lab %d: %s is of lab %d", lab.Number, a.ID(), a.Lab)
			}
		}
		if earlier := len(own[1].Earlier); earlier > 0 != (lab.Number == len(c.Labs)) || earlier > 0 && earlier != lab.Number-1 {
			t.Errorf("the solution of lab %d is judged on %d labs besides", lab.Number, earlier)
		}
	}
}
