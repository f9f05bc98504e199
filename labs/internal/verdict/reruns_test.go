package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
)

// The failure of a right is shown before, and instead of, the failures of what needs it.
func TestChecksThatRunAgainStandOnTheLabThatRunsThem(t *testing.T) {
	earlier := &course.Lab{Number: 1, Checks: []course.Check{{ID: "creates"}, {ID: "follows", Requires: []string{"creates"}}}}
	rights := &course.Lab{Number: 2, Reruns: []int{1}, RerunsRequire: []string{"works"}, Checks: []course.Check{{ID: "works"}, {ID: "modest"}}}
	labs := ownFirst([]*course.Lab{earlier, rights})

	checks := []Check{{ID: "works", State: Failed}, {ID: "modest", State: Passed}, {ID: "creates", State: Failed}, {ID: "follows", State: Failed}}
	Block(checks, labs)
	var got []string
	for i, c := range checks {
		if want := labs[i/2].Checks[i%2].ID; c.ID != want {
			t.Errorf("check %d is %s, want %s", i, c.ID, want)
		}
		got = append(got, string(c.State)+" "+c.BlockedBy)
	}
	if diff := cmp.Diff([]string{"fail ", "pass ", "blocked works", "blocked works"}, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"works", "creates", "works"}, requirements(labs)["follows"]); diff != "" {
		t.Errorf("what follows waits for (-want +got):\n%s", diff)
	}
	if earlier.Checks[0].Requires != nil {
		t.Error("the course itself was changed")
	}
}
