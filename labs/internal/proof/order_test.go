package proof

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Somebody who fixes a check wants to know first whether it holds now. A late check stays late: it is not asked when
// another one fails.
func TestWhatFailedLastTimeBeginsFirst(t *testing.T) {
	t.Parallel()
	built, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	report, err := built.DryRun(t.Context(), suite.Config{Artifacts: t.TempDir(), Failing: []string{"keeps-apart", "nothing-to-do", "weathers-storm"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"keeps-apart": int(env.First), "nothing-to-do": int(env.First), "weathers-storm": int(env.Last),
		"follows-size": 0, "creates-deployment": int(env.First),
	}
	got := map[string]int{}
	for _, spec := range report.SpecReports {
		for id := range want {
			if slices.Contains(spec.LeafNodeLabels, suite.CheckLabel+id) {
				got[id] = spec.SpecPriority
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
