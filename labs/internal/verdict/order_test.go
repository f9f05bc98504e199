package verdict_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// The failure that explains the others is the one to show, wherever in the course it stands.
func TestTheFailureThatExplainsTheOthersComesFirst(t *testing.T) {
	type failure struct {
		lab       int
		id, cause string
	}
	for name, tc := range map[string]struct {
		failures []failure
		first    string
	}{
		"in the course's order":             {[]failure{{4, "a", "not-scaled"}, {5, "b", "no-reference"}, {6, "c", "other"}}, "a"},
		"a manager that ended":              {[]failure{{4, "a", "not-scaled"}, {4, "b", "manager-exited"}, {4, "c", "manager-exited"}}, "b"},
		"a manager that does nothing":       {[]failure{{4, "a", "no-deployment"}, {6, "b", "manager-silent"}}, "b"},
		"a definition before the manager":   {[]failure{{4, "a", "manager-exited"}, {4, "b", "no-manifest"}}, "b"},
		"rights":                            {[]failure{{4, "a", "no-deployment"}, {6, "b", "no-event"}, {7, "c", "forbidden"}}, "c"},
		"rights, told by this lab":          {[]failure{{4, "a", "forbidden"}, {7, "b", "not-synced"}}, "b"},
		"a role that is missing":            {[]failure{{4, "a", "forbidden"}, {7, "b", "no-role"}, {7, "c", "forbidden"}}, "b"},
		"a role that is stale":              {[]failure{{4, "a", "forbidden"}, {7, "b", "stale"}, {7, "c", "forbidden"}}, "b"},
		"a stale file is nothing special":   {[]failure{{3, "a", "wrong-value"}, {3, "b", "stale"}}, "a"},
		"what waits for another":            {[]failure{{7, "a", "does-not-work"}, {7, "b", "no-status"}}, "b"},
		"what waits for another, by itself": {[]failure{{7, "a", "does-not-work"}}, "a"},
	} {
		r := &verdict.Result{Lab: 7, Checks: []verdict.Check{{ID: "fine", State: verdict.Passed}, {ID: "waits", State: verdict.Blocked}}}
		for _, f := range tc.failures {
			r.Checks = append(r.Checks, verdict.Check{ID: f.id, Lab: f.lab, Cause: f.cause, State: verdict.Failed})
		}
		if got := r.First(); got == nil || got.ID != tc.first {
			t.Errorf("%s: the first is %+v, want %s", name, got, tc.first)
		}
	}
	if got := (&verdict.Result{Checks: []verdict.Check{{State: verdict.Passed}}}).First(); got != nil {
		t.Errorf("nothing failed, and %+v is first", got)
	}
}
