package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
)

// What never held cannot be lost: only a lab that this workspace has passed is called a regression.
func TestARegressionIsWhatHeldBefore(t *testing.T) {
	c := &course.Course{Labs: []*course.Lab{
		{Number: 1, Representative: "creates", Checks: []course.Check{{ID: "creates"}, {ID: "follows"}}},
		{Number: 2, Representative: "tells", Checks: []course.Check{{ID: "tells"}}},
		{Number: 3, Checks: []course.Check{{ID: "works"}}},
	}}
	state := t.TempDir()
	if err := remember(state, []*Result{{Lab: 1, Verdict: Pass, Workspace: "mine"}, {Lab: 2, Verdict: Pass, Workspace: "yours"}}); err != nil {
		t.Fatal(err)
	}
	r := &run{Judge: &Judge{Course: c}}
	var err error
	if r.held, err = held(state, "mine"); err != nil {
		t.Fatal(err)
	}
	got := r.checksOf([]Check{{ID: "creates", Lab: 1}, {ID: "follows", Lab: 1}, {ID: "tells", Lab: 2}, {ID: "works", Lab: 3}}, 3)
	want := []Check{{ID: "creates", Lab: 1, Regression: true}, {ID: "tells", Lab: 2}, {ID: "works", Lab: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
