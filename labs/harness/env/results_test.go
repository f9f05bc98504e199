package env

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestOtherFailures(t *testing.T) {
	config, run := current.config, current.shared.Run
	t.Cleanup(func() { current.config, current.shared.Run = config, run })
	failed := func(check string) suite.Result { return suite.Result{Run: "b", Check: check, State: suite.Failed} }
	for name, tc := range map[string]struct {
		result           suite.Result
		check            string
		long             bool
		failed, decisive string
	}{
		"a run that does not count":     {suite.Result{Run: "a", Check: "opens", State: suite.Failed}, "repairs", true, "", ""},
		"it passed":                     {suite.Result{Run: "b", Check: "opens", State: suite.Passed}, "repairs", true, "", ""},
		"it was blocked":                {suite.Result{Run: "b", Check: "opens", State: suite.Blocked}, "repairs", true, "", ""},
		"the machine was busy":          {suite.Result{Run: "b", Check: "opens", State: suite.Failed, Load: 9}, "repairs", true, "", ""},
		"another check":                 {failed("other"), "repairs", false, "other", ""},
		"another, for one that is long": {failed("other"), "repairs", true, "other", "other"},
		"the opening check":             {failed("opens"), "repairs", false, "opens", "opens"},
		"the opening check, for itself": {failed("opens"), "opens", false, "opens", ""},
	} {
		current.config = suite.Config{Artifacts: t.TempDir(), Opening: map[int]string{4: "opens"}}
		current.shared.Run = "b"
		if err := suite.Append(filepath.Join(current.config.Artifacts, suite.ResultsFile), tc.result); err != nil {
			t.Fatal(err)
		}
		c := &check{id: tc.check, lab: 4, long: tc.long}
		if failed, decisive := c.otherFailures(); failed != tc.failed || decisive != tc.decisive {
			t.Errorf("%s: %q, %q", name, failed, decisive)
		}
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
	write("holds", types.SpecStatePassed, suite.Result{})
	write("fails", types.SpecStateFailed, suite.Result{State: suite.Failed, Finding: finding.New("not-scaled", "5", "3")})
	write("given-up", types.SpecStateFailed, suite.Result{State: suite.Blocked, BlockedBy: "fails"})
	write("hangs", types.SpecStateTimedout, suite.Result{})
	write("panics", types.SpecStatePanicked, suite.Result{})
	write("skipped", types.SpecStateSkipped, suite.Result{})
	results, err := suite.ReadResults(filepath.Join(current.config.Artifacts, suite.ResultsFile))
	var got []string
	for _, r := range results {
		line := r.Check + " " + string(r.State)
		if r.Finding != nil {
			line += " " + r.Finding.Cause
		}
		got = append(got, line)
	}
	want := "holds passed, fails failed not-scaled, given-up blocked, hangs failed other, panics broken"
	if strings.Join(got, ", ") != want || err != nil {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
}
