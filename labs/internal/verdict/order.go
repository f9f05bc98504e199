package verdict

import (
	"cmp"
	"slices"

	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	causeForbidden = "forbidden"
	causeNotSynced = "not-synced"
	// causeStale is a generated file that is not what the sources make today.
	causeStale = "stale"
)

// The ranks of causes: a failure with a smaller one explains those with a bigger one. 0 is whatever a check is about.
const (
	fromDefinition = iota - 3 // there is no object to reconcile, or no right to do it with
	fromManager               // there is no manager that works
	fromRights                // the manager is not allowed what it needs
	_
	fromOtherCheck // the check says itself that another one has to be fixed first
)

var ranks = map[string]int{
	suite.CauseNoManifest: fromDefinition, suite.CauseRefused: fromDefinition, "no-role": fromDefinition, "no-rules": fromDefinition,
	suite.CauseManagerExited: fromManager, suite.CauseManagerSilent: fromManager,
	causeForbidden: fromRights, causeNotSynced: fromRights,
	"does-not-work": fromOtherCheck,
}

// failed are the failed checks, those that explain others first: what stops everything before what stops one check, and then
// in the course's order. Of several checks that were stopped by the same thing, those of the lab that was asked for come first:
// its hints are about this lab.
func (r *Result) failed() []*Check {
	var all []*Check
	denied := false
	for i := range r.Checks {
		if c := &r.Checks[i]; c.State == Failed {
			all, denied = append(all, c), denied || ranks[c.Cause] == fromRights
		}
	}
	rank := func(c *Check) int {
		if c.Cause == causeStale && denied { // the role that the manager lacks rights for
			return fromDefinition
		}
		return ranks[c.Cause]
	}
	foreign := func(c *Check) int { return min(1, max(c.Lab-r.Lab, r.Lab-c.Lab)) }
	slices.SortStableFunc(all, func(a, b *Check) int {
		if rank(a) != rank(b) || rank(a) == 0 {
			return cmp.Compare(rank(a), rank(b))
		}
		return cmp.Compare(foreign(a), foreign(b))
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
