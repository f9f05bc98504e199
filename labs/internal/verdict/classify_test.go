package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func TestChecksThatNeedPodsAreNotPassedWithoutThem(t *testing.T) {
	got := classify(false, spec("first", types.SpecStatePassed), spec("second", types.SpecStatePassed))
	if state := got.Checks[2].State; state != verdict.NotChecked {
		t.Errorf("third is %s, want %s", state, verdict.NotChecked)
	}
	if got.Defect != "" {
		t.Errorf("defect: %s", got.Defect)
	}
}

func TestBlockNamesTheRoot(t *testing.T) {
	checks := []verdict.Check{
		{ID: "first", State: verdict.Failed}, {ID: "second", State: verdict.Failed}, {ID: "third", State: verdict.Failed},
	}
	verdict.Block(checks, []*course.Lab{lab})
	want := []verdict.Check{
		{ID: "first", State: verdict.Failed},
		{ID: "second", State: verdict.Blocked, BlockedBy: "first"},
		{ID: "third", State: verdict.Blocked, BlockedBy: "first"},
	}
	if diff := cmp.Diff(want, checks); diff != "" {
		t.Error(diff)
	}
}

func TestBlockLeavesChecksAloneWhosePrerequisitesHold(t *testing.T) {
	checks := []verdict.Check{
		{ID: "first", State: verdict.Passed}, {ID: "second", State: verdict.Passed}, {ID: "third", State: verdict.Failed, Cause: "x"},
	}
	want := append([]verdict.Check(nil), checks...)
	verdict.Block(checks, []*course.Lab{lab})
	if diff := cmp.Diff(want, checks, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
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

func TestACheckIsFoldedUnderTheOneThatItWasGivenUpFor(t *testing.T) {
	checks := []verdict.Check{
		{ID: "first", State: verdict.Blocked, BlockedBy: "fourth"},
		{ID: "second", State: verdict.Blocked, BlockedBy: "first"},
		{ID: "third", State: verdict.Blocked, BlockedBy: "second"},
		{ID: "fourth", State: verdict.Failed},
	}
	verdict.Block(checks, []*course.Lab{lab, {Checks: []course.Check{{ID: "fourth"}}}})
	want := []verdict.Check{
		{ID: "first", State: verdict.Blocked, BlockedBy: "fourth"},
		{ID: "second", State: verdict.Blocked, BlockedBy: "fourth"},
		{ID: "third", State: verdict.Blocked, BlockedBy: "fourth"},
		{ID: "fourth", State: verdict.Failed},
	}
	if diff := cmp.Diff(want, checks); diff != "" {
		t.Error(diff)
	}
}

func TestACheckThatWasGivenUpForOneThatNeedsIt(t *testing.T) {
	checks := []verdict.Check{
		{ID: "first", State: verdict.Blocked, BlockedBy: "second"}, {ID: "second", State: verdict.Failed}, {ID: "third", State: verdict.Passed},
	}
	verdict.Block(checks, []*course.Lab{lab})
	want := []verdict.Check{
		{ID: "first", State: verdict.Blocked, BlockedBy: "second"}, {ID: "second", State: verdict.Failed}, {ID: "third", State: verdict.Passed},
	}
	if diff := cmp.Diff(want, checks); diff != "" {
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
