package verdict

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestOutcomesAreToldOnceCertain(t *testing.T) {
	for name, c := range map[string]struct {
		embedded, unblocked bool
		results             []suite.Result
		want                []string
	}{
		"holds":                       {results: []suite.Result{passes("second"), passes("first")}, want: []string{"second pass 1/3; ", "first pass 2/3; "}},
		"fails by itself":             {results: []suite.Result{fails("first")}, want: []string{"first fail 0/3; "}},
		"after what it requires":      {results: []suite.Result{fails("second"), passes("first")}, want: []string{"", "first pass 1/3; second fail 1/3; "}},
		"explained by another":        {results: []suite.Result{fails("second"), fails("first")}, want: []string{"", "first fail 0/3; "}},
		"another was given up for it": {results: []suite.Result{fails("second"), givenUp("first", "second")}, want: []string{"", "second fail 0/3; "}},
		"the machine's":               {results: []suite.Result{cannot("first")}, want: []string{""}},
		"a defect of the lab":         {results: []suite.Result{{Check: "first", State: suite.Broken}}, want: []string{""}},
		"the last one that fails":     {results: []suite.Result{passes("first"), passes("second"), fails("third")}, want: []string{"first pass 1/3; ", "second pass 2/3; ", ""}},
		"needs Pods":                  {embedded: true, results: []suite.Result{passes("first"), fails("second")}, want: []string{"first pass 1/2; ", ""}},
		"each in its own right":       {unblocked: true, results: []suite.Result{fails("third")}, want: []string{"third fail 0/3; "}},
	} {
		var got []string
		now := ""
		outcomes := NewOutcomes(threeChecks, !c.embedded, c.unblocked, func(o Outcome) {
			now += fmt.Sprintf("%s %s %d/%d; ", o.ID, o.State, o.Holding, o.All)
		})
		for _, r := range c.results {
			now = ""
			outcomes.Hear(r)
			got = append(got, now)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestFixedChecksAreTold(t *testing.T) {
	told := make(chan Outcome)
	r := &run{
		Judge:     &Judge{OnOutcome: func(o Outcome) { told <- o }},
		artifacts: t.TempDir(), cluster: &clusters.Cluster{RealPods: true}, failing: []string{"fixed", "still-fails"},
	}
	lab := &course.Lab{Number: 4}
	for _, result := range []suite.Result{passes("fixed"), passes("held"), fails("still-fails"), passes("last")} {
		lab.Checks = append(lab.Checks, course.Check{ID: result.Check})
		if err := suite.Append(filepath.Join(r.artifacts, suite.ResultsFile), result); err != nil {
			t.Fatal(err)
		}
	}
	r.wanted = []*course.Lab{lab}
	end := r.listen(t.Context(), []int{4})
	var got strings.Builder
	for range lab.Checks {
		o := <-told
		fmt.Fprintf(&got, "%s %v; ", o.ID, o.Fixed)
	}
	end()
	if want := "fixed true; held false; still-fails false; last false; "; got.String() != want {
		t.Errorf("told %q, want %q", &got, want)
	}
}
