package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
)

// What never held cannot be lost: only a lab that this workspace has passed is called a regression.
func TestARegressionIsWhatHeldBefore(t *testing.T) {
	c := &course.Course{Labs: []*course.Lab{
		{Number: 1, Setup: []string{course.SetupManager}, Checks: []course.Check{{ID: "creates"}, {ID: "follows"}}},
		{Number: 2, Setup: []string{course.SetupManager}, Checks: []course.Check{{ID: "tells"}}},
		{Number: 3, Setup: []string{course.SetupManager}, Checks: []course.Check{{ID: "works"}}},
	}}
	state := t.TempDir()
	if err := remember(state, []*Result{{Lab: 1, Verdict: Pass, Workspace: "mine"}, {Lab: 2, Verdict: Pass, Workspace: "yours"}}); err != nil {
		t.Fatal(err)
	}
	events, err := History(state, "mine")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Judge: &Judge{Course: c}, held: held(events)}
	got := r.checksFor(3, []Check{{ID: "creates", Lab: 1}, {ID: "follows", Lab: 1}, {ID: "tells", Lab: 2}, {ID: "works", Lab: 3}})
	want := []Check{{ID: "creates", Lab: 1, Regression: true}, {ID: "tells", Lab: 2}, {ID: "works", Lab: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFailingIsFromTheLastVerdictOnTheCode(t *testing.T) {
	fail := func(lab int, failed ...string) Event { return Event{Lab: lab, Verdict: Fail, Failed: failed} }
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"nothing was judged":         {},
		"the last failure":           {[]Event{fail(4, "creates"), fail(4, "follows", "catches-up")}, []string{"follows", "catches-up"}},
		"of another lab":             {[]Event{fail(4, "creates"), fail(5, "owned")}, []string{"creates"}},
		"held since":                 {[]Event{fail(4, "creates"), {Lab: 4, Verdict: Pass}}, nil},
		"did not compile since":      {[]Event{fail(4, "creates"), fail(4)}, []string{"creates"}},
		"the machine failed since":   {[]Event{fail(4, "creates"), {Lab: 4, Verdict: Environment, Failed: []string{"follows"}}}, []string{"creates"}},
		"failed again after holding": {[]Event{{Lab: 4, Verdict: Pass}, fail(4, "follows")}, []string{"follows"}},
	} {
		if diff := cmp.Diff(c.want, failing(c.events, []int{4})); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
