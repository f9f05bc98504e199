package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

var threeChecks = []*course.Lab{{Number: 4, Checks: []course.Check{
	{ID: "first"},
	{ID: "second", Requires: []string{"first"}},
	{ID: "third", Requires: []string{"second"}, Needs: []string{course.NeedsPods}},
}}}

func passes(id string) suite.Result { return suite.Result{Check: id, State: suite.Passed} }

func fails(id string) suite.Result {
	return suite.Result{Check: id, State: suite.Failed, Finding: finding.New("no-deployment", "a Deployment", "none")}
}

func cannot(id string) suite.Result {
	return suite.Result{Check: id, State: suite.Failed, Finding: finding.Machine("start", fmt.Errorf("no memory"))}
}

func givenUp(id, by string) suite.Result {
	return suite.Result{Check: id, State: suite.Blocked, BlockedBy: by}
}

// states are checks in one line.
func states(checks []Check) string {
	var all []string
	for _, c := range checks {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s by %s", c.ID, c.State, c.BlockedBy), " by "))
	}
	return strings.Join(all, ", ")
}

func TestClassify(t *testing.T) {
	broken, busy := suite.Result{Check: "first", State: suite.Broken, Defect: "panicked"}, fails("second")
	busy.Load = 9
	for name, tc := range map[string]struct {
		results  []suite.Result
		embedded bool
		want     string
		broken   string
	}{
		"failed":                 {results: []suite.Result{passes("third"), fails("second"), passes("first")}, want: "first pass, second fail, third pass"},
		"late on a busy machine": {results: []suite.Result{passes("first"), busy, fails("third")}, want: "first pass, second not-judged, third fail"},
		"machine unable":         {results: []suite.Result{cannot("first"), passes("second"), passes("third")}, want: "first not-judged, second pass, third pass"},
		"needs Pods":             {results: []suite.Result{fails("first"), passes("second")}, embedded: true, want: "first fail, second pass, third not-checked"},
		// The suite has a time limit, and a learner's operator can take all of it.
		"missing after a failure": {results: []suite.Result{fails("second"), passes("third")}, want: "first blocked by second, second fail, third pass"},
		"missing":                 {results: []suite.Result{passes("second"), passes("third")}, want: "first , second pass, third pass", broken: "first did not run"},
		"broken":                  {results: []suite.Result{broken, passes("second"), passes("third")}, want: "first fail, second pass, third pass", broken: "panicked"},
		"setup": {results: []suite.Result{passes("first"), passes("second"), passes("third"), {State: suite.Broken, Defect: "connect"}},
			want: "first pass, second pass, third pass", broken: "connect"},
	} {
		checks, err := classify(tc.results, threeChecks, !tc.embedded)
		if got := states(checks); got != tc.want || (err != nil) != (tc.broken != "") || err != nil && !strings.Contains(err.Error(), tc.broken) {
			t.Errorf("%s: %s, %v; want %s, %q", name, got, err, tc.want, tc.broken)
		}
	}
	failed := fails("first")
	failed.Evidence = []finding.Evidence{{Title: "Log", Lines: []string{"no luck"}}}
	checks, _ := classify([]suite.Result{failed}, threeChecks, true)
	want := Check{ID: "first", Lab: 4, State: Failed, Cause: "no-deployment", Expected: "a Deployment", Seen: "none", Evidence: failed.Evidence}
	if diff := cmp.Diff(want, checks[0]); diff != "" {
		t.Error(diff)
	}
}

func TestUnable(t *testing.T) {
	late := Check{ID: "late", State: NotJudged, Load: 9}
	for name, tc := range map[string]struct {
		checks []Check
		want   string
	}{
		"all pass":              {[]Check{{State: Passed}}, ""},
		"late":                  {[]Check{{State: Passed}, late, {State: Blocked}}, "busy: its load average was 9"},
		"late, and one fails":   {[]Check{late, {State: Failed}}, ""},
		"the machine could not": {[]Check{late, {ID: "asks", State: NotJudged, Seen: "no memory"}}, "asks could not run"},
		"could not, a failure":  {[]Check{{State: NotJudged}, {State: Failed}}, ""},
	} {
		problem := unable(tc.checks, []int{5})
		if (problem != nil) != (tc.want != "") || problem != nil && !strings.Contains(problem.Finding(), tc.want) {
			t.Errorf("%s: %v, want %q", name, problem, tc.want)
		}
	}
}

func TestBlockNamesTheRoot(t *testing.T) {
	labs := append(threeChecks, &course.Lab{Number: 5, Checks: []course.Check{{ID: "fourth"}, {ID: "fifth"}}})
	for _, tc := range []struct {
		results []suite.Result
		want    string
	}{
		{[]suite.Result{fails("first"), fails("second"), fails("third")}, "first fail, second blocked by first, third blocked by first"},
		{[]suite.Result{passes("first"), passes("second"), fails("third")}, "first pass, second pass, third fail"},
		{[]suite.Result{passes("first"), fails("second"), fails("third")}, "first pass, second fail, third blocked by second"},
		{[]suite.Result{givenUp("first", "fourth"), givenUp("second", "first"), givenUp("third", "second"), fails("fourth"), passes("fifth")},
			"first blocked by fourth, second blocked by fourth, third blocked by fourth, fourth fail, fifth pass"},
		{[]suite.Result{givenUp("first", "second"), fails("second"), passes("third")}, "first blocked by second, second fail, third pass"},
		{[]suite.Result{passes("first"), passes("second"), passes("third"), fails("fourth"), fails("fifth")},
			"first pass, second pass, third pass, fourth fail, fifth blocked by fourth"}, // the opening check of its lab
	} {
		among := labs
		if len(tc.results) == 3 {
			among = threeChecks
		}
		checks, _ := classify(tc.results, among, true)
		block(checks, among)
		if got := states(checks); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestFirstExplainsTheOthers(t *testing.T) {
	type failure struct {
		lab       int
		id, cause string
	}
	for name, tc := range map[string]struct {
		failures []failure
		first    string
	}{
		"the course's order":        {[]failure{{4, "a", "not-scaled"}, {5, "b", "no-reference"}, {6, "c", "other"}}, "a"},
		"a manager that ended":      {[]failure{{4, "a", "not-scaled"}, {4, "b", "manager-exited"}, {4, "c", "manager-exited"}}, "b"},
		"a manager that is silent":  {[]failure{{4, "a", "no-deployment"}, {6, "b", "manager-silent"}}, "b"},
		"definition before manager": {[]failure{{4, "a", "manager-exited"}, {4, "b", "no-manifest"}}, "b"},
		"rights":                    {[]failure{{4, "a", "no-deployment"}, {6, "b", "no-event"}, {7, "c", "forbidden"}}, "c"},
		"rights, told by this lab":  {[]failure{{4, "a", "forbidden"}, {7, "b", "not-synced"}}, "b"},
		"no role":                   {[]failure{{4, "a", "forbidden"}, {7, "b", "no-role"}, {7, "c", "forbidden"}}, "b"},
		"a stale role":              {[]failure{{4, "a", "forbidden"}, {7, "b", "stale"}, {7, "c", "forbidden"}}, "b"},
		"another stale file":        {[]failure{{3, "a", "wrong-value"}, {3, "b", "stale"}}, "a"},
		"nothing failed":            {nil, ""},
	} {
		r := &Result{Lab: 7, Checks: []Check{{ID: "fine", State: Passed}, {ID: "waits", State: Blocked}}}
		for _, f := range tc.failures {
			r.Checks = append(r.Checks, Check{ID: f.id, Lab: f.lab, Cause: f.cause, State: Failed})
		}
		got := ""
		if first := r.First(); first != nil {
			got = first.ID
		}
		if got != tc.first {
			t.Errorf("%s: the first is %q, want %q", name, got, tc.first)
		}
	}
}
