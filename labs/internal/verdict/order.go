package verdict

import (
	"slices"

	"github.com/example/operator-lab/labs/internal/suite"
)

// Priorities of causes: a failure with a smaller one explains those with a bigger one.
const (
	// fromDefinition: there is no object to reconcile, or no right to do it with.
	fromDefinition = iota
	// fromManager: there is no manager that works.
	fromManager
	// fromRights: the manager is not allowed what it needs.
	fromRights
	// ownReason: whatever the check is about.
	ownReason
	// otherCheck: the check says itself that another one has to be fixed first.
	otherCheck
)

// causePriority has the causes that explain, or are explained by, failures of other checks.
var causePriority = map[string]int{
	suite.CauseNoManifest: fromDefinition, suite.CauseRefused: fromDefinition,
	"no-role": fromDefinition, "no-rules": fromDefinition,
	suite.CauseManagerExited: fromManager, suite.CauseManagerSilent: fromManager,
	causeForbidden: fromRights, causeNotSynced: fromRights,
	"does-not-work": otherCheck,
}

const (
	causeForbidden = "forbidden"
	causeNotSynced = "not-synced"
	// causeStale is a generated file that is not what the sources make today.
	causeStale = "stale"
)

// explains orders failed checks by how much they explain: what stops everything before what stops one
// check, and then in the course's order. Of several checks that were stopped by the same thing, those of
// the lab that was asked for come first: its hints are about this lab.
func (r *Result) explains(a, b *Check) int {
	if difference := r.priority(a) - r.priority(b); difference != 0 {
		return difference
	}
	if r.priority(a) == ownReason {
		return 0
	}
	return r.foreign(a) - r.foreign(b)
}

// foreign is 1 for a check of another lab than the one that was asked for.
func (r *Result) foreign(c *Check) int {
	if c.Lab == r.Lab {
		return 0
	}
	return 1
}

func (r *Result) priority(c *Check) int {
	// A stale file is like any other finding, unless it is the role that the manager lacks rights for.
	if c.Cause == causeStale && r.any(causeForbidden, causeNotSynced) {
		return fromDefinition
	}
	if n, ok := causePriority[c.Cause]; ok {
		return n
	}
	return ownReason
}

// any says whether a check failed from one of the causes.
func (r *Result) any(causes ...string) bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.State == Failed && slices.Contains(causes, c.Cause) })
}

// failed are the failed checks, those that explain others first.
func (r *Result) failed() []*Check {
	var all []*Check
	for i := range r.Checks {
		if r.Checks[i].State == Failed {
			all = append(all, &r.Checks[i])
		}
	}
	slices.SortStableFunc(all, r.explains)
	return all
}

// First is the failed check that explains the others, and that a hint is about; nil when none failed.
func (r *Result) First() *Check {
	if failed := r.failed(); len(failed) > 0 {
		return failed[0]
	}
	return nil
}
