package schoolday

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
)

func TestTheDayHasEverythingInIt(t *testing.T) {
	c, err := course.Load(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutants.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan(c, all, 10, 7)
	if !reflect.DeepEqual(plan, Plan(c, all, 10, 7)) {
		t.Error("the same seed plans two days")
	}
	if reflect.DeepEqual(plan, Plan(c, all, 10, 8)) {
		t.Error("another seed plans the same day")
	}
	wrong, stuck := map[string]bool{}, 0
	right := map[int]int{}
	for i, tries := range plan {
		lab := 0
		for at, try := range tries {
			if try.Lab < lab || try.Lab > lab+1 {
				t.Errorf("learner %d goes from lab %d to %d", i, lab, try.Lab)
			}
			lab = try.Lab
			switch {
			case try.Mutant == nil:
				right[lab]++
			case wrong[try.Mutant.String()]:
				t.Errorf("two learners give the answer %s", try.Mutant)
			default:
				wrong[try.Mutant.String()] = true
			}
			if try.Last {
				stuck++
				if at != len(tries)-1 || try.Mutant == nil {
					t.Errorf("learner %d is stuck with %s and goes on", i, try)
				}
			}
		}
	}
	if stuck != 2 {
		t.Errorf("%d are stuck, want 2 of 10", stuck)
	}
	for _, lab := range c.Labs {
		if right[lab.Number] < 8 {
			t.Errorf("%d of 10 pass lab %d", right[lab.Number], lab.Number)
		}
		if len(of(all, lab.Number)) == 0 || !anyOf(wrong, lab.Number, all) {
			t.Errorf("nobody answers lab %d wrongly", lab.Number)
		}
	}
}

func anyOf(wrong map[string]bool, lab int, all []*mutants.Mutant) bool {
	for _, m := range of(all, lab) {
		if wrong[m.String()] {
			return true
		}
	}
	return false
}
