package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/suite"
)

// classify gives every check of the labs, in the course's order, with the suite's result. realPods says whether the cluster runs
// containers. A check without a result, such as one that the suite had no time for, is blocked by the first that failed. The error is
// what kept the suite from judging a check.
func classify(results []suite.Result, labs []*course.Lab, realPods bool) (checks []Check, broken error) {
	checks = checksOf(labs, realPods)
	for _, r := range results {
		if i := slices.IndexFunc(checks, func(c Check) bool { return c.ID == r.Check && c.State == "" }); i >= 0 {
			broken = cmp.Or(broken, checks[i].add(r))
		} else if r.Check == "" {
			broken = cmp.Or(broken, errors.New(r.Defect))
		}
	}
	first := slices.IndexFunc(checks, func(c Check) bool { return c.State == Failed })
	for i := range checks {
		if c := &checks[i]; c.State == "" && first >= 0 {
			c.State, c.BlockedBy = Blocked, checks[first].ID
		} else if c.State == "" {
			broken = cmp.Or(broken, fmt.Errorf("the check %s did not run", c.ID))
		}
	}
	return checks, broken
}

// checksOf are the checks of labs before their results are known.
func checksOf(labs []*course.Lab, realPods bool) (all []Check) {
	for _, lab := range labs {
		for _, c := range lab.Checks {
			check := Check{ID: c.ID, Title: c.Title, Lab: lab.Number}
			if !c.RunsOn(realPods) {
				check.State = NotChecked
			}
			all = append(all, check)
		}
	}
	return all
}

// add gives the check the suite's result. The error says what kept the suite from judging it.
func (c *Check) add(r suite.Result) error {
	c.Seconds = r.Ended.Sub(r.Began).Seconds()
	switch {
	case r.State == suite.Passed:
		c.State = Passed
	case r.State == suite.Blocked:
		c.State, c.BlockedBy = Blocked, r.BlockedBy
	case r.State == suite.Failed && r.Finding != nil:
		c.State, c.Load, c.Evidence = Failed, r.Load, r.Evidence
		if r.Load > 0 || r.Finding.Cause == finding.CauseMachine {
			c.State = NotJudged
		}
		c.Cause, c.Expected, c.Seen, c.Fields = r.Finding.Cause, r.Finding.Expected, r.Finding.Seen, r.Finding.Fields
		plain.Within(c)
	default:
		c.State = Failed
		return fmt.Errorf("the check %s is %s: %s", c.ID, r.State, r.Defect)
	}
	return nil
}

// block turns failed checks whose prerequisite failed into blocked ones: the opening check of their lab, and those that they
// require. Each names the failed check at the root.
func block(checks []Check, labs []*course.Lab) {
	known := map[string]*Check{}
	for i := range checks {
		known[checks[i].ID] = &checks[i]
	}
	stopped := func(id string) bool {
		return known[id] != nil && (known[id].State == Failed || known[id].State == Blocked)
	}
	root := func(id string) string {
		for range checks {
			if c := known[id]; c != nil && c.State == Blocked {
				id = c.BlockedBy
			}
		}
		return id
	}
	for _, lab := range labs {
		for _, c := range lab.Checks { // each after those that it requires
			needs := append(slices.Clone(c.Requires), lab.Opening().ID)
			because := slices.IndexFunc(needs, func(need string) bool { return stopped(need) && root(need) != c.ID })
			if stopped(c.ID) && because >= 0 {
				known[c.ID].State, known[c.ID].BlockedBy = Blocked, root(needs[because])
			}
		}
	}
	for i := range checks {
		if c := &checks[i]; c.State == Blocked {
			c.BlockedBy = root(c.BlockedBy)
		}
	}
}

// certain are the results that stand although the cluster failed later: those of checks that ended before until. The others get the
// problem as a finding about the machine. It returns nil unless one that stands is a failure: a pass of some checks is no verdict.
func certain(results []suite.Result, until time.Time, checks []string, problem error) (kept []suite.Result) {
	failed := false
	for _, id := range checks {
		i := slices.IndexFunc(results, func(r suite.Result) bool { return r.Check == id && r.State != suite.Broken && !r.Ended.After(until) })
		if i < 0 {
			kept = append(kept, suite.Result{Check: id, State: suite.Failed, Finding: finding.Machine("keep its cluster running", problem)})
			continue
		}
		r := results[i]
		kept, failed = append(kept, r), failed || r.State == suite.Failed && r.Load == 0 && r.Finding != nil && r.Finding.Cause != finding.CauseMachine
	}
	if !failed {
		return nil
	}
	return kept
}

// The ranks of causes: a failure with a smaller one explains those with a bigger one. Any other cause has rank 0.
const (
	fromDefinition = iota - 3 // there is no object to reconcile, or no right to do it with
	fromManager               // there is no manager that works
	fromRights                // the manager is not allowed what it needs
)

var ranks = map[string]int{
	suite.CauseNoManifest: fromDefinition, suite.CauseRefused: fromDefinition, "no-role": fromDefinition,
	suite.CauseManagerExited: fromManager, suite.CauseManagerSilent: fromManager,
	"forbidden": fromRights, "not-synced": fromRights,
}

// failed are the failed checks, those that explain others first, then in the course's order. Of several that one cause stopped, those
// of the judged lab come first: its hints are about that lab.
func (r *Result) failed() []*Check {
	var all []*Check
	denied := false
	for i := range r.Checks {
		if c := &r.Checks[i]; c.State == Failed {
			all, denied = append(all, c), denied || ranks[c.Cause] == fromRights
		}
	}
	rank := func(c *Check) int {
		if c.Cause == "stale" && denied { // a stale role lacks rights
			return fromDefinition
		}
		return ranks[c.Cause]
	}
	earlier := func(c *Check) int {
		if c.Lab == r.Lab || rank(c) == 0 {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *Check) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(earlier(a), earlier(b)))
	})
	return all
}

// First is the failed check that explains the others, and that a hint is about; nil when none failed.
func (r *Result) First() *Check {
	if failed := r.failed(); len(failed) > 0 {
		return failed[0]
	}
	return nil
}
