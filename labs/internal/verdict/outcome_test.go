package verdict_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// heard hears the reports one after the other, and gives what is told after each.
func heard(canRunPods, unblocked bool, specs ...suite.Result) (after []string) {
	var now string
	outcomes := verdict.NewOutcomes([]*course.Lab{lab}, canRunPods, unblocked, func(o verdict.Outcome) {
		now += fmt.Sprintf("%s %s %d/%d; ", o.ID, o.State, o.Holding, o.All)
	})
	for _, s := range specs {
		now = ""
		outcomes.Hear(s)
		after = append(after, now)
	}
	return after
}

func TestOutcomesAreToldOnceCertain(t *testing.T) {
	pass := func(id string) suite.Result { return ended(id, suite.Passed) }
	fail := func(id, cause string) suite.Result {
		return ended(id, suite.Failed, finding.New(cause, "this", "that"))
	}
	for name, c := range map[string]struct {
		embedded, unblocked bool
		specs               []suite.Result
		want                []string
	}{
		"what holds, at once":                {specs: []suite.Result{pass("second"), pass("first")}, want: []string{"second pass 1/3; ", "first pass 2/3; "}},
		"what fails by itself, at once":      {specs: []suite.Result{fail("first", "no-deployment")}, want: []string{"first fail 0/3; "}},
		"not before what it requires":        {specs: []suite.Result{fail("second", "too-few"), pass("first")}, want: []string{"", "first pass 1/3; second fail 1/3; "}},
		"not what another failure explains":  {specs: []suite.Result{fail("second", "too-few"), fail("first", "no-deployment")}, want: []string{"", "first fail 0/3; "}},
		"for which another one was given up": {specs: []suite.Result{fail("second", "too-few"), blockedBy("first", "second")}, want: []string{"", "second fail 0/3; "}},
		"not the machine's":                  {specs: []suite.Result{fail("first", finding.CauseMachine)}, want: []string{""}},
		"not a defect of the lab":            {specs: []suite.Result{ended("first", suite.Broken)}, want: []string{""}},
		"not the last one that fails":        {specs: []suite.Result{pass("first"), pass("second"), fail("third", "x")}, want: []string{"first pass 1/3; ", "second pass 2/3; ", ""}},
		"without those that need real Pods":  {embedded: true, specs: []suite.Result{pass("first"), fail("second", "x")}, want: []string{"first pass 1/2; ", ""}},
		"each in its own right":              {unblocked: true, specs: []suite.Result{fail("third", "x")}, want: []string{"third fail 0/3; "}},
		"no node of the suite":               {specs: []suite.Result{{State: suite.Broken, Defect: "connect"}}, want: []string{""}},
	} {
		if diff := cmp.Diff(c.want, heard(!c.embedded, c.unblocked, c.specs...)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
