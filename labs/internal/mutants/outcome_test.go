package mutants

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func small(t *testing.T) *course.Course {
	t.Helper()
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOutcome(t *testing.T) {
	mute := &Mutant{Lab: 2, ID: "mute", Caught: "says-name", Cause: "silent", Also: []string{"shouts"}}
	failed := func(id, cause string) verdict.Check {
		return verdict.Check{ID: id, Cause: cause, State: verdict.Failed, Expected: "a\nname", Seen: "nothing"}
	}
	passed := verdict.Check{ID: "takes-name", State: verdict.Passed}
	blocked := verdict.Check{ID: "says-name", State: verdict.Blocked, BlockedBy: "takes-name"}
	for name, c := range map[string]struct {
		mutant  *Mutant
		verdict verdict.Verdict
		checks  []verdict.Check
		build   *verdict.Build
		want    []string
	}{
		"caught":            {mute, verdict.Fail, []verdict.Check{passed, failed("says-name", "silent")}, nil, nil},
		"caught, and more":  {mute, verdict.Fail, []verdict.Check{failed("says-name", "silent"), failed("shouts", "other")}, nil, nil},
		"passes":            {mute, verdict.Pass, []verdict.Check{passed}, nil, []string{"it passes"}},
		"another check":     {mute, verdict.Fail, []verdict.Check{failed("takes-name", "other"), blocked}, nil, []string{"it should be caught by says-name, and is by takes-name (other): expected a name; saw nothing"}},
		"another one first": {mute, verdict.Fail, []verdict.Check{failed("shouts", "other"), failed("says-name", "silent")}, nil, []string{"it should be caught by says-name, and is by shouts (other): expected a name; saw nothing"}},
		"another cause":     {mute, verdict.Fail, []verdict.Check{failed("says-name", "other")}, nil, []string{"the cause should be silent, and it is says-name (other): expected a name; saw nothing"}},
		"a cause without hints": {mute, verdict.Fail, []verdict.Check{failed("says-name", "deaf")}, nil,
			[]string{"the cause should be silent, and it is says-name (deaf): expected a name; saw nothing", "says-name has no hints for deaf"}},
		"more than it names": {mute, verdict.Fail, []verdict.Check{failed("says-name", "silent"), failed("says-hello", "other")}, nil,
			[]string{"and this fails: says-hello (other): expected a name; saw nothing"}},
		"does not compile":     {mute, verdict.Fail, []verdict.Check{blocked}, &verdict.Build{Output: "main.go:1:\n  oh"}, []string{"no check caught it: it does not compile: main.go:1: oh"}},
		"environment":          {mute, verdict.Environment, []verdict.Check{failed("says-name", "silent")}, nil, []string{"no check caught it: the verdict is environment: the disk is full"}},
		"right":                {nil, verdict.Pass, []verdict.Check{passed}, nil, nil},
		"right and failing":    {nil, verdict.Fail, []verdict.Check{failed("says-name", "silent")}, nil, []string{"a right answer fails lab 2: says-name (silent): expected a name; saw nothing"}},
		"right, and no engine": {nil, verdict.Environment, nil, nil, []string{"a right answer does not pass lab 2: the verdict is environment: the disk is full"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &verdict.Result{Lab: 2, Verdict: c.verdict, Checks: c.checks, Build: c.build}
			if c.verdict == verdict.Environment {
				r.Environment.Finding = "the disk is full"
			}
			got := Compare(small(t), Answer{Lab: 2, Mutant: c.mutant}, r)
			if diff := cmp.Diff(c.want, got.Wrong); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A starter fails in every check of its lab; what is blocked, or holds, would never be seen to fail.
func TestCompareStarter(t *testing.T) {
	for name, c := range map[string]struct {
		verdict verdict.Verdict
		checks  []verdict.Check
		want    []string
	}{
		"all fail": {verdict.Fail, []verdict.Check{{Lab: 2, ID: "says-name", State: verdict.Failed}, {Lab: 1, ID: "earlier", State: verdict.Passed}}, nil},
		"one holds": {verdict.Fail, []verdict.Check{{Lab: 2, ID: "says-name", State: verdict.Failed}, {Lab: 2, ID: "shouts", State: verdict.Passed}},
			[]string{"check shouts is pass on the starter"}},
		"one is blocked": {verdict.Fail, []verdict.Check{{Lab: 2, ID: "says-name", State: verdict.Failed}, {Lab: 2, ID: "shouts", State: verdict.Blocked}},
			[]string{"check shouts is blocked on the starter"}},
		"passes": {verdict.Pass, nil, []string{"a starter does not fail: the verdict is pass"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare(small(t), Answer{Lab: 2, Starter: true}, &verdict.Result{Lab: 2, Verdict: c.verdict, Checks: c.checks})
			if diff := cmp.Diff(c.want, got.Wrong); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The solution of the last lab is judged on all labs, and one of them alone may say no.
func TestCompareRightOnEarlierLabs(t *testing.T) {
	results := []*verdict.Result{
		{Lab: 1, Verdict: verdict.Fail, Checks: []verdict.Check{{Lab: 1, ID: "earlier", Cause: "c", State: verdict.Failed, Expected: "a", Seen: "b"}}},
		{Lab: 2, Verdict: verdict.Pass},
	}
	got := Compare(small(t), Answer{Lab: 2, Earlier: []int{1}}, results...)
	want := []string{"a right answer fails lab 1: earlier (c): expected a; saw b"}
	if diff := cmp.Diff(want, got.Wrong); diff != "" || !got.Right {
		t.Error(diff, got)
	}
}

func TestOutcomeShowsTheHintAndTheSlowestCheck(t *testing.T) {
	got := Compare(small(t), Answer{Lab: 2, Mutant: &Mutant{Lab: 2, ID: "mute", Misconception: "m", Caught: "says-name", Cause: "silent"}},
		&verdict.Result{Lab: 2, Verdict: verdict.Fail, Artifacts: "here", Checks: []verdict.Check{
			{ID: "takes-name", State: verdict.Passed, Seconds: 0.2},
			{ID: "says-name", Cause: "silent", State: verdict.Failed, Seconds: 0.1},
			{ID: "shouts", Cause: "other", State: verdict.Failed},
		}})
	want := Outcome{Lab: 2, ID: "mute", Misconception: "m", Caught: "says-name", Cause: "silent", Hint: "think", Slowest: "takes-name",
		Also: []string{"shouts"}, Wrong: []string{"and this fails: shouts (other): expected ; saw"}, Artifacts: "here"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSample(t *testing.T) {
	c := small(t)
	var all []*Mutant
	for lab := 1; lab <= 3; lab++ {
		for _, id := range strings.Split("abcdefgh", "")[:2*lab] {
			all = append(all, &Mutant{Lab: lab, ID: id})
		}
	}
	ids := func(seed int64, all []*Mutant) (names []string) {
		for _, a := range Sample(c, all, 3, seed) {
			names = append(names, a.Mutant.String())
		}
		return names
	}
	one := ids(1, all)
	if len(one) != 2+3+3 || one[0] != "1/a" || one[1] != "1/b" {
		t.Errorf("sample: %v", one)
	}
	if diff := cmp.Diff(one, ids(1, all)); diff != "" {
		t.Errorf("the same seed: %s", diff)
	}
	if cmp.Equal(one, ids(2, all)) && cmp.Equal(one, ids(3, all)) {
		t.Errorf("all seeds draw %v", one)
	}
	more := ids(1, append([]*Mutant{{Lab: 1, ID: "new"}}, all...))
	if diff := cmp.Diff(one[2:], more[3:]); diff != "" {
		t.Errorf("lab 1 has one more, and others draw differently: %s", diff)
	}
}

func TestTheRightAnswersAreJudgedToo(t *testing.T) {
	var got []string
	for _, a := range Answers(small(t), []*Mutant{{Lab: 1, ID: "a"}, {Lab: 3, ID: "b"}}) {
		got = append(got, a.ID())
	}
	if diff := cmp.Diff([]string{solution, "a", solution, solution, "b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryAndTable(t *testing.T) {
	c := small(t) // lab 3 runs 1 and 2 again
	var text strings.Builder
	table := NewTable(&text, []Answer{{Lab: 1}, {Lab: 2, Mutant: &Mutant{ID: "mute", Caught: "says-name", Cause: "silent"}}})
	outcomes := []Outcome{
		{Lab: 1, ID: solution, Right: true, Seconds: 99},
		{Lab: 2, ID: "mute", Caught: "says-name", Cause: "silent", Seconds: 2, Hint: strings.Repeat("think ", 20)},
		{Lab: 2, ID: "deaf", Seconds: 12, Wrong: []string{"it passes"}, Artifacts: "a/b"},
		{Lab: 3, ID: "low", Caught: "shouts", Cause: "other", Seconds: 12},
	}
	for _, o := range outcomes {
		table.Tell(o)
	}
	Summarize(c, outcomes).Print(&text)
	want := `lab  answer    caught by          seconds  hint
1    solution  passes                99.0
2    mute      says-name: silent      2.0  think think think think think think think think think think thi…
2    deaf                            12.0
     wrong: it passes
     the evidence is in a/b
3    low       shouts: other         12.0
lab 2: from the ready cluster to the verdict 2.0 s (median of 2), 95 of 100 within 12.0 s: beyond the target of 10 s
lab 3: from the ready cluster to the verdict 12.0 s (median of 1), 95 of 100 within 12.0 s: within the target of 20 s
2 caught, 1 wrong, 1 right answers passed
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryCountsTheRunsOfEachAnswer(t *testing.T) {
	wrong := []string{"it fails"}
	var text strings.Builder
	s := Summarize(small(t), []Outcome{
		{Lab: 1, ID: solution, Right: true}, {Lab: 2, ID: solution, Right: true}, {Lab: 2, ID: "mute"}, {Lab: 3, ID: "once"},
		{Lab: 1, ID: solution, Right: true}, {Lab: 2, ID: solution, Right: true, Wrong: wrong}, {Lab: 2, ID: "mute", Wrong: wrong},
		{Lab: 1, ID: solution, Right: true}, {Lab: 2, ID: solution, Right: true}, {Lab: 2, ID: "mute", Wrong: wrong},
	})
	s.Paces = nil // TestSummaryAndTable has them
	s.Print(&text)
	want := `1/solution: 3 of 3 runs as expected
2/solution: 2 of 3 runs as expected
2/mute: 1 of 3 runs as expected
2 caught, 3 wrong, 5 right answers passed
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}
