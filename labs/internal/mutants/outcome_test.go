package mutants

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// The hint of the small course for says-name and silent is "think".
func TestCompare(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	mute := Answer{Lab: 2, ID: "mute", Mutant: &Mutant{Lab: 2, ID: "mute", Caught: "says-name", Cause: "silent", Also: []string{"shouts"}}}
	starter := Answer{Lab: 2, Starter: true}
	failed := func(id, cause string) verdict.Check {
		return verdict.Check{Lab: 2, ID: id, Cause: cause, State: verdict.Failed, Expected: "a\nname", Seen: "nothing"}
	}
	passed := verdict.Check{Lab: 2, ID: "takes-name", State: verdict.Passed}
	blocked := verdict.Check{Lab: 2, ID: "says-name", State: verdict.Blocked, BlockedBy: "takes-name"}
	const unread = `the learner does not read the hint of says-name for silent: "think"`
	for name, tc := range map[string]struct {
		answer  Answer
		verdict verdict.Verdict
		checks  []verdict.Check
		report  string
		want    []string
	}{
		"caught":           {mute, verdict.Fail, []verdict.Check{passed, failed("says-name", "silent")}, "hint  think", nil},
		"caught, and more": {mute, verdict.Fail, []verdict.Check{failed("says-name", "silent"), failed("shouts", "other")}, "think", nil},
		"without its hint": {mute, verdict.Fail, []verdict.Check{failed("says-name", "silent")}, "hint  guess", []string{unread}},
		"passes":           {mute, verdict.Pass, []verdict.Check{passed}, "", []string{"no check caught it: the verdict is pass"}},
		"by another check": {mute, verdict.Fail, []verdict.Check{failed("takes-name", "other"), blocked}, "",
			[]string{"it should be caught by says-name (silent), and is by takes-name (other): expected a name; saw nothing", unread}},
		"for another cause": {mute, verdict.Fail, []verdict.Check{failed("says-name", "other")}, "think",
			[]string{"it should be caught by says-name (silent), and is by says-name (other): expected a name; saw nothing"}},
		"with more than it names": {mute, verdict.Fail, []verdict.Check{failed("says-name", "silent"), failed("says-hello", "other")}, "think",
			[]string{"and this fails: says-hello (other): expected a name; saw nothing"}},
		"environment": {mute, verdict.Environment, []verdict.Check{failed("says-name", "silent")}, "",
			[]string{"no check caught it: the verdict is environment: the disk is full"}},
		"solution": {Answer{Lab: 2}, verdict.Pass, []verdict.Check{passed}, "", nil},
		"solution that fails": {Answer{Lab: 2}, verdict.Fail, []verdict.Check{failed("says-name", "silent")}, "",
			[]string{"a right answer does not pass lab 2: says-name (silent): expected a name; saw nothing"}},
		"starter":            {starter, verdict.Fail, []verdict.Check{failed("says-name", "silent")}, "", nil},
		"starter, one holds": {starter, verdict.Fail, []verdict.Check{failed("says-name", "silent"), passed}, "", []string{"check takes-name is pass on the starter"}},
		"starter, one is blocked": {starter, verdict.Fail, []verdict.Check{failed("takes-name", "other"), blocked}, "",
			[]string{"check says-name is blocked on the starter"}},
		"starter that passes": {starter, verdict.Pass, nil, "", []string{"a starter does not fail: the verdict is pass"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &verdict.Result{Lab: 2, Verdict: tc.verdict, Checks: tc.checks}
			if tc.verdict == verdict.Environment {
				r.Environment.Finding = "the disk is full"
			}
			got := Compare(c, tc.answer, tc.report, r)
			if diff := cmp.Diff(tc.want, got.Wrong); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The solution of the last lab is judged on all labs, and one of them alone may say no.
func TestCompareEarlierLabs(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	got := Compare(c, Answer{Lab: 2, Earlier: []int{1}}, "", &verdict.Result{Lab: 1, Verdict: verdict.Fail}, &verdict.Result{Lab: 2, Verdict: verdict.Pass})
	if diff := cmp.Diff([]string{"a right answer does not pass lab 1: the verdict is fail"}, got.Wrong); diff != "" {
		t.Error(diff)
	}
}

// A change is asked all wrong answers to its labs, and the first to each other lab.
func TestGate(t *testing.T) {
	c := &course.Course{Root: t.TempDir(), Labs: []*course.Lab{{Number: 1}, {Number: 2, Dir: "labs/02"}, {Number: 3}, {Number: 4}}}
	coursetest.Write(t, c.Root, "labs/correct/client-go/go.mod", "module m\n")
	wrong := []*Mutant{{Lab: 1, ID: "a"}, {Lab: 1, ID: "b"}, {Lab: 2, ID: "d"}, {Lab: 2, ID: "e"}}
	var got []string
	for _, a := range Gate(c, wrong, func(folder string) bool { return folder == "labs/02" }) {
		got = append(got, a.String())
	}
	want := []string{
		"1/starter", "1/solution", "1/a", "2/starter", "2/solution", "2/d", "2/e", "3/starter", "3/solution", "4/starter", "4/solution", "4/finished", "4/client-go",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNeedsPods(t *testing.T) {
	c := &course.Course{Labs: []*course.Lab{{Number: 1, Checks: []course.Check{{ID: "starts", Needs: []string{course.NeedsPods}}, {ID: "scales"}}}, {Number: 2}}}
	for want, answers := range map[bool][]Answer{
		true:  {{Lab: 1}, {Lab: 1, Starter: true}, {Lab: 1, Mutant: &Mutant{Caught: "starts"}}, {Lab: 2, Earlier: []int{1}}},
		false: {{Lab: 2}, {Lab: 1, Mutant: &Mutant{Caught: "scales"}}},
	} {
		for _, a := range answers {
			if a.NeedsPods(c) != want {
				t.Errorf("%+v needs Pods: %t", a, !want)
			}
		}
	}
}
