package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/harness"
)

func stormSpec(state types.SpecState, entries ...types.ReportEntry) types.Report {
	return types.Report{SpecReports: types.SpecReports{
		{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStatePassed},
		{
			LeafNodeType: types.NodeTypeIt, State: state, ReportEntries: entries,
			LeafNodeLabels: []string{harness.CheckLabel + "weathers-storm"},
			Failure:        types.Failure{Message: "a timeout"},
		},
	}}
}

func stormEntry(json string) types.ReportEntry {
	return types.ReportEntry{Name: harness.StormEntry, Value: types.ReportEntryValue{AsJSON: json}}
}

func TestStormsAreReadInTheOrderOfTheirSeeds(t *testing.T) {
	report := stormSpec(types.SpecStateFailed,
		stormEntry(`{"seed":7,"seconds":4.5,"settled":1.5,"events":3}`),
		stormEntry(`{"seed":8,"seconds":11,"cause":"leftover","seen":"it is there"}`))
	got, err := stormsOf(report, "weathers-storm", 7)
	want := []harness.Storm{{Seed: 7, Seconds: 4.5, Settled: 1.5, Events: 3}, {Seed: 8, Seconds: 11, Cause: "leftover", Seen: "it is there"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// A storm whose check ran out of time, or panicked, must not look like the end of a good run.
func TestAStormWithoutAVerdictCountsAsNotWeathered(t *testing.T) {
	got, err := stormsOf(stormSpec(types.SpecStateTimedout, stormEntry(`{"seed":7}`)), "weathers-storm", 7)
	want := []harness.Storm{{Seed: 7}, {Seed: 8, Cause: "other", Seen: "a timeout"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestASoakWithoutStormsIsAnError(t *testing.T) {
	if storms, err := stormsOf(stormSpec(types.SpecStatePassed), "weathers-storm", 7); err == nil {
		t.Errorf("no error, and %v", storms)
	}
	broken := types.Report{SpecReports: types.SpecReports{{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStateFailed}}}
	if storms, err := stormsOf(broken, "weathers-storm", 7); err == nil {
		t.Errorf("no error from a suite that could not begin, and %v", storms)
	}
}
