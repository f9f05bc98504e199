package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

var lab = &course.Lab{Number: 4, Checks: []course.Check{
	{ID: "first", Title: "The first"},
	{ID: "second", Title: "The second", Requires: []string{"first"}},
	{ID: "third", Title: "The third", Requires: []string{"second"}, Needs: []string{course.NeedsPods}},
}}

func ended(id string, state suite.State, findings ...*finding.Finding) suite.Result {
	r := suite.Result{Check: id, State: state}
	if len(findings) > 0 {
		r.Finding = findings[0]
	}
	return r
}

func blockedBy(id, by string) suite.Result {
	return suite.Result{Check: id, State: suite.Blocked, BlockedBy: by}
}

var noDeploymentYet = finding.New("no-deployment", "a Deployment", "none")

func classify(canRunPods bool, results ...suite.Result) verdict.Classification {
	return verdict.Classify(results, []*course.Lab{lab}, canRunPods)
}

func TestClassifyFindings(t *testing.T) {
	evidence := []finding.Evidence{{Title: "Your manager's log", Lines: []string{"no luck"}}}
	failed := ended("second", suite.Failed, noDeploymentYet)
	failed.Evidence = evidence
	got := classify(true, ended("third", suite.Passed), ended("first", suite.Passed), failed)
	want := []verdict.Check{
		{ID: "first", Title: "The first", Lab: 4, State: verdict.Passed},
		{ID: "second", Title: "The second", Lab: 4, State: verdict.Failed, Cause: "no-deployment", Expected: "a Deployment", Seen: "none", Evidence: evidence},
		{ID: "third", Title: "The third", Lab: 4, State: verdict.Passed},
	}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Error(diff)
	}
	if got.Defect != "" {
		t.Errorf("a defect where there is none: %s", got.Defect)
	}
}

func TestMissingResultIsDefect(t *testing.T) {
	passed := []suite.Result{ended("second", suite.Passed), ended("third", suite.Passed)}
	for name, results := range map[string][]suite.Result{
		"missing":  passed,
		"panicked": append(passed, ended("first", suite.Broken)),
		"setup":    append(passed, ended("first", suite.Passed), suite.Result{State: suite.Broken, Defect: "connect to the cluster: EOF"}),
	} {
		if got := classify(true, results...); got.Defect == "" {
			t.Errorf("%s: no defect is reported", name)
		}
	}
}

// The suite has a time limit, and a learner's operator can take all of it.
func TestMissingResultAfterFailureIsBlocked(t *testing.T) {
	got := classify(true, ended("second", suite.Failed, noDeploymentYet), ended("third", suite.Passed))
	if got.Defect != "" || got.Checks[0].State != verdict.Blocked || got.Checks[0].BlockedBy != "second" || got.Checks[1].State != verdict.Failed {
		t.Errorf("%+v", got)
	}
}

func TestChecksThatNeedPodsAreNotChecked(t *testing.T) {
	for _, first := range []suite.State{suite.Passed, suite.Failed} {
		got := classify(false, ended("first", first, noDeploymentYet), ended("second", suite.Passed))
		if got.Checks[2].State != verdict.NotChecked || got.Defect != "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestLateCheckOnBusyMachineIsNotJudged(t *testing.T) {
	late := ended("second", suite.Failed, noDeploymentYet)
	late.Load = 9
	got := classify(true, ended("first", suite.Passed), late, ended("third", suite.Failed, finding.New("too-few", "2", "1")))
	verdict.Block(got.Checks, []*course.Lab{lab})
	for i, want := range []verdict.State{verdict.Passed, verdict.NotJudged, verdict.Failed} {
		if got.Checks[i].State != want {
			t.Errorf("%s is %s, want %s", got.Checks[i].ID, got.Checks[i].State, want)
		}
	}
}

func TestBlockNamesTheRoot(t *testing.T) {
	const fails, holds = verdict.Failed, verdict.Passed
	waits := func(id, by string) verdict.Check { return blocked(by, id)[0] }
	for name, tc := range map[string]struct{ checks, want []verdict.Check }{
		"of all that stand on it": {
			[]verdict.Check{check("first", fails), check("second", fails), check("third", fails)},
			[]verdict.Check{check("first", fails), waits("second", "first"), waits("third", "first")},
		},
		"unless the prerequisites hold": {
			[]verdict.Check{check("first", holds), check("second", holds), check("third", fails)},
			[]verdict.Check{check("first", holds), check("second", holds), check("third", fails)},
		},
		"of those that were given up for it": {
			[]verdict.Check{waits("first", "fourth"), waits("second", "first"), waits("third", "second"), check("fourth", fails)},
			[]verdict.Check{waits("first", "fourth"), waits("second", "fourth"), waits("third", "fourth"), check("fourth", fails)},
		},
		"of one that was given up for a check that requires it": {
			[]verdict.Check{waits("first", "second"), check("second", fails), check("third", holds)},
			[]verdict.Check{waits("first", "second"), check("second", fails), check("third", holds)},
		},
	} {
		verdict.Block(tc.checks, []*course.Lab{lab, {Checks: []course.Check{{ID: "fourth"}}}})
		if diff := cmp.Diff(tc.want, tc.checks); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestOpeningCheckBlocksItsLab(t *testing.T) {
	labs := []*course.Lab{{Checks: []course.Check{{ID: "opens"}, {ID: "other"}}}, {Checks: []course.Check{{ID: "elsewhere"}}}}
	checks := []verdict.Check{check("opens", verdict.Failed), check("other", verdict.Failed), check("elsewhere", verdict.Failed)}
	verdict.Block(checks, labs)
	want := []verdict.Check{check("opens", verdict.Failed), blocked("opens", "other")[0], check("elsewhere", verdict.Failed)}
	if diff := cmp.Diff(want, checks); diff != "" {
		t.Error(diff)
	}
}
