package verdict

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestFixedChecksAreTold(t *testing.T) {
	told := make(chan Outcome)
	r := &run{
		Judge:     &Judge{OnOutcome: func(o Outcome) { told <- o }},
		artifacts: t.TempDir(), cluster: &clusters.Cluster{RealPods: true}, failing: []string{"fixed", "still-fails"},
	}
	var got strings.Builder
	lab := &course.Lab{Number: 4}
	for _, result := range []suite.Result{
		{Check: "fixed", State: suite.Passed}, {Check: "held", State: suite.Passed},
		{Check: "still-fails", State: suite.Failed, Finding: finding.New("other", "this", "that")}, {Check: "last", State: suite.Passed},
	} {
		lab.Checks = append(lab.Checks, course.Check{ID: result.Check})
		if err := suite.Append(filepath.Join(r.artifacts, suite.ResultsFile), result); err != nil {
			t.Fatal(err)
		}
	}
	r.wanted = []*course.Lab{lab}
	end := r.listen(t.Context(), []int{4})
	for range lab.Checks {
		o := <-told
		fmt.Fprintf(&got, "%s %v; ", o.ID, o.Fixed)
	}
	end()
	if want := "fixed true; held false; still-fails false; last false; "; got.String() != want {
		t.Errorf("told %q, want %q", &got, want)
	}
}
