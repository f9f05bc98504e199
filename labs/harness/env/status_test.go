package env

import (
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestFailedChecksElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), suite.ResultsFile)
	of := func(results ...suite.Result) *results {
		for _, r := range results {
			if err := suite.Append(path, r); err != nil {
				t.Fatal(err)
			}
		}
		return newResults(path, "b")
	}
	opening, other := suite.Result{Run: "b", Check: "opens", State: suite.Failed}, suite.Result{Run: "b", Check: "other", State: suite.Failed}
	for _, r := range []suite.Result{
		{Run: "a", Check: "opens", State: suite.Failed}, // of a run that does not count
		{Run: "b", Check: "passes", State: suite.Passed}, {Run: "b", Check: "blocked", State: suite.Blocked},
		{Run: "b", Check: "late", State: suite.Failed, Load: 9},
	} {
		of(r)
	}
	if s := of().elsewhere("repairs", "opens", true); s != (Status{}) {
		t.Errorf("nothing has failed: %+v", s)
	}
	if s := of(other).elsewhere("repairs", "opens", false); s != (Status{Failed: "other"}) {
		t.Errorf("another check: %+v", s)
	}
	if s := of().elsewhere("repairs", "opens", true); s != (Status{Failed: "other", Pointless: "other"}) {
		t.Errorf("another check, for one that takes long: %+v", s)
	}
	if s := of(opening).elsewhere("repairs", "opens", false); s != (Status{Failed: "other", Pointless: "opens"}) {
		t.Errorf("the opening check: %+v", s)
	}
	if s := of().elsewhere("opens", "opens", false); s.Pointless != "" {
		t.Errorf("the opening check, for itself: %+v", s)
	}
}

func TestWriteResult(t *testing.T) {
	config, run := current.config, current.shared.Run
	t.Cleanup(func() { current.config, current.shared.Run = config, run; current.check.Store(nil) })
	current.config.Artifacts, current.shared.Run = t.TempDir(), "a"
	write := func(id string, state types.SpecState, result suite.Result) {
		current.check.Store(&check{id: id, result: result})
		WriteResult(types.SpecReport{LeafNodeLabels: []string{suite.CheckLabel + id}, State: state})
	}
	f := finding.New("not-scaled", "5", "3")
	write("holds", types.SpecStatePassed, suite.Result{})
	write("fails", types.SpecStateFailed, suite.Result{State: suite.Failed, Finding: f})
	write("given-up", types.SpecStateFailed, suite.Result{State: suite.Blocked, BlockedBy: "fails"})
	write("hangs", types.SpecStateTimedout, suite.Result{})
	write("panics", types.SpecStatePanicked, suite.Result{})
	write("skipped", types.SpecStateSkipped, suite.Result{})
	got, err := suite.ReadResults(filepath.Join(current.config.Artifacts, suite.ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"holds passed ", "fails failed not-scaled", "given-up blocked ", "hangs failed other", "panics broken "}
	for i, r := range got {
		cause := ""
		if r.Finding != nil {
			cause = r.Finding.Cause
		}
		if line := r.Check + " " + string(r.State) + " " + cause; i >= len(want) || line != want[i] {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d results, want %d", len(got), len(want))
	}
}
