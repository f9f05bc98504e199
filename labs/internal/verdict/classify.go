package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/suite"
)

const defect = "this is a defect of the lab: please report it with the artifacts"

// Classification is what the results of a suite say about the checks of some labs.
type Classification struct {
	Checks []Check
	// Defect is what kept the suite itself from judging, "" when it judged every check.
	Defect string
}

// Classify gives every check of the labs, in the course's order. canRunPods says what the cluster was able to judge. A check
// without a result, such as after the end of the suite's time, is blocked by one that has failed.
func Classify(results []suite.Result, labs []*course.Lab, canRunPods bool) Classification {
	ended := map[string]suite.Result{}
	var c Classification
	for _, r := range results {
		if ended[r.Check] = r; r.Check == "" {
			c.Defect = r.Defect
		}
	}
	c.Checks = checksOf(labs, canRunPods)
	for i := range c.Checks {
		check := &c.Checks[i]
		result, ran := ended[check.ID]
		switch {
		case check.State != "":
		case !ran:
			check.State = Blocked
		default:
			c.Defect = cmp.Or(c.Defect, check.add(result))
		}
	}
	first := slices.IndexFunc(c.Checks, func(check Check) bool { return check.State == Failed })
	for i := range c.Checks {
		if check := &c.Checks[i]; check.State == Blocked && check.BlockedBy == "" && first >= 0 {
			check.BlockedBy = c.Checks[first].ID
		} else if check.State == Blocked && check.BlockedBy == "" {
			check.State, c.Defect = Failed, cmp.Or(c.Defect, fmt.Sprintf("the check %s did not run", check.ID))
		}
	}
	return c
}

// checksOf are the checks of labs before their results are known.
func checksOf(labs []*course.Lab, canRunPods bool) (all []Check) {
	for _, lab := range labs {
		for _, c := range lab.Checks {
			check := Check{ID: c.ID, Title: c.Title, Lab: lab.Number}
			if !canRunPods && c.NeedsPods() {
				check.State = NotChecked
			}
			all = append(all, check)
		}
	}
	return all
}

// add gives the check what the suite says about it, and returns what is broken about the suite.
func (c *Check) add(r suite.Result) (broken string) {
	c.Seconds = r.Ended.Sub(r.Began).Seconds()
	switch {
	case r.State == suite.Passed:
		c.State = Passed
	case r.State == suite.Blocked:
		c.State, c.BlockedBy = Blocked, r.BlockedBy
	case r.State == suite.Failed && r.Finding != nil:
		c.State, c.Load = Failed, r.Load
		if r.Load > 0 {
			c.State = NotJudged
		}
		c.Cause, c.Expected, c.Seen, c.Fields = r.Finding.Cause, r.Finding.Expected, r.Finding.Seen, r.Finding.Fields
		c.Evidence = r.Evidence
		plain.Within(c)
	default:
		c.State = Failed
		return fmt.Sprintf("the check %s is %s: %s", c.ID, r.State, r.Defect)
	}
	return ""
}

// Block turns failed checks whose prerequisite failed into blocked ones: the opening check of their lab, and those that they
// require. Without it every check is shown in its own right.
func Block(checks []Check, labs []*course.Lab) {
	requires := map[string][]string{}
	for _, lab := range labs {
		for _, c := range lab.Checks {
			requires[c.ID] = append(slices.Clone(c.Requires), lab.Opening().ID)
		}
	}
	known := map[string]*Check{}
	root := func(id string) string {
		if c := known[id]; c != nil && c.State == Blocked {
			return c.BlockedBy
		}
		return id
	}
	for i := range checks { // a check stands below those that it requires
		c := &checks[i]
		known[c.ID] = c
		if c.State != Failed && c.State != Blocked {
			continue
		}
		for _, need := range requires[c.ID] {
			other := known[need]
			if other == nil || other == c || other.State != Failed && other.State != Blocked || root(need) == c.ID {
				continue
			}
			c.State, c.BlockedBy = Blocked, root(need)
			break
		}
	}
	for i := range checks {
		if c := &checks[i]; c.State == Blocked && root(c.BlockedBy) != c.ID {
			c.BlockedBy = root(c.BlockedBy)
		}
	}
}
