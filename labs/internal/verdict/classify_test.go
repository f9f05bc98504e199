package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"

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

func spec(id string, state types.SpecState, findings ...*finding.Finding) types.SpecReport {
	s := types.SpecReport{LeafNodeLabels: []string{suite.CheckLabel + id}, State: state}
	for _, f := range findings {
		s.ReportEntries = append(s.ReportEntries, types.ReportEntry{
			Name: suite.FindingEntry, Value: types.ReportEntryValue{AsJSON: f.String()},
		})
	}
	return s
}

func classify(canRunPods bool, specs ...types.SpecReport) verdict.Classification {
	return verdict.Classify(types.Report{SpecReports: specs}, []*course.Lab{lab}, canRunPods)
}

func TestAFindingReachesTheAnswer(t *testing.T) {
	got := classify(true,
		spec("third", types.SpecStatePassed),
		spec("first", types.SpecStatePassed),
		spec("second", types.SpecStateFailed, finding.New("no-deployment", "a Deployment", "none")),
	)
	want := []verdict.Check{
		{ID: "first", Title: "The first", Lab: 4, State: verdict.Passed},
		{ID: "second", Title: "The second", Lab: 4, State: verdict.Failed, Cause: "no-deployment", Expected: "a Deployment", Seen: "none"},
		{ID: "third", Title: "The third", Lab: 4, State: verdict.Passed},
	}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Error(diff)
	}
	if got.Defect != "" {
		t.Errorf("a defect where there is none: %s", got.Defect)
	}
}

func TestWhatTheSuiteCannotAnswerIsADefectOfTheLab(t *testing.T) {
	passed := []types.SpecReport{spec("second", types.SpecStatePassed), spec("third", types.SpecStatePassed)}
	for name, specs := range map[string][]types.SpecReport{
		"missing":     passed,
		"panicked":    append(passed, spec("first", types.SpecStatePanicked)),
		"skipped":     append(passed, spec("first", types.SpecStateSkipped)),
		"interrupted": append(passed, spec("first", types.SpecStateInterrupted)),
		"setup": append(passed, spec("first", types.SpecStatePassed), types.SpecReport{
			LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStateFailed,
		}),
	} {
		if got := classify(true, specs...); got.Defect == "" {
			t.Errorf("%s: no defect is reported", name)
		}
	}
}

// The suite has a time limit, and a learner's operator can take all of it.
func TestWhatIsSkippedAfterAFailureIsBlocked(t *testing.T) {
	got := classify(true,
		spec("first", types.SpecStateSkipped),
		spec("second", types.SpecStateFailed, finding.New("no-deployment", "a Deployment", "none")),
		spec("third", types.SpecStatePassed),
	)
	if got.Defect != "" || got.Checks[0].State != verdict.Blocked || got.Checks[0].BlockedBy != "second" || got.Checks[1].State != verdict.Failed {
		t.Errorf("%+v", got)
	}
}

// A check has a time limit of its own, and a learner's operator can take all of it.
func TestWhatIsSkippedAfterATimeoutIsBlocked(t *testing.T) {
	got := classify(true, spec("first", types.SpecStateSkipped), spec("second", types.SpecStateTimedout), spec("third", types.SpecStatePassed))
	if got.Defect != "" || got.Checks[0].BlockedBy != "second" {
		t.Errorf("%+v", got)
	}
}

func TestChecksThatNeedPodsAreNotPassedWithoutThem(t *testing.T) {
	got := classify(false, spec("first", types.SpecStatePassed), spec("second", types.SpecStatePassed))
	if state := classify(false, spec("first", types.SpecStatePassed),
		spec("second", types.SpecStateFailed, finding.New("no-deployment", "a Deployment", "none")),
		spec("third", types.SpecStateSkipped)).Checks[2].State; state != verdict.NotChecked {
		t.Errorf("third is %s after another one failed, want %s", state, verdict.NotChecked)
	}
	if state := got.Checks[2].State; state != verdict.NotChecked {
		t.Errorf("third is %s, want %s", state, verdict.NotChecked)
	}
	if got.Defect != "" {
		t.Errorf("defect: %s", got.Defect)
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

func TestACheckThatWasGivenUpIsBlocked(t *testing.T) {
	got := classify(true,
		spec("first", types.SpecStateFailed, finding.New("no-deployment", "a Deployment", "none")),
		spec("second", types.SpecStateFailed, finding.New(suite.CauseBlocked, "the check first holds", "first")),
		spec("third", types.SpecStateFailed, finding.New(suite.CauseBlocked, "the check second holds", "second")),
	)
	verdict.Block(got.Checks, []*course.Lab{lab})
	want := []verdict.Check{
		{ID: "first", Title: "The first", Lab: 4, State: verdict.Failed, Cause: "no-deployment", Expected: "a Deployment", Seen: "none"},
		{ID: "second", Title: "The second", Lab: 4, State: verdict.Blocked, BlockedBy: "first"},
		{ID: "third", Title: "The third", Lab: 4, State: verdict.Blocked, BlockedBy: "first"},
	}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Error(diff)
	}
}

func TestEvidenceReachesTheAnswer(t *testing.T) {
	want := []finding.Evidence{{Title: "Your manager's log", Lines: []string{"no luck"}}}
	s := spec("first", types.SpecStateFailed, finding.New("no-deployment", "a Deployment", "none"))
	s.ReportEntries = append(s.ReportEntries, types.ReportEntry{
		Name: suite.EvidenceEntry, Value: types.ReportEntryValue{AsJSON: `[{"title":"Your manager's log","lines":["no luck"]}]`},
	})
	got := classify(true, s, spec("second", types.SpecStatePassed), spec("third", types.SpecStatePassed))
	if diff := cmp.Diff(want, got.Checks[0].Evidence); diff != "" {
		t.Error(diff)
	}
}
