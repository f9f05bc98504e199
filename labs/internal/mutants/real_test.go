package mutants_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// This is about the course itself, not about this package's code.
func TestTheWrongAnswersOfTheCourseAreInOrder(t *testing.T) {
	c, err := course.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := mutants.Lint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}
