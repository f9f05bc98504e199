package mutants_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
)

// This is about the course itself, not about this package's code.
func TestLintCourse(t *testing.T) {
	c := coursetest.Load(t, "../../..")
	problems, err := mutants.Lint(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}
