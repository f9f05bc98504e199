package verdict

import (
	"strings"
	"testing"
)

func TestBusyMachineIsEnvironment(t *testing.T) {
	late := Check{ID: "late", State: NotJudged, Load: 9}
	for name, tc := range map[string]struct {
		checks []Check
		busy   bool
	}{
		"nothing is late":        {[]Check{{State: Passed}}, false},
		"late":                   {[]Check{{State: Passed}, late, {State: Blocked}}, true},
		"late, and a failure is": {[]Check{late, {State: Failed}}, false},
	} {
		err := busy(tc.checks, []int{5})
		if (err != nil) != tc.busy || err != nil && (!strings.Contains(err.Error(), "late") || !strings.Contains(err.Error(), "make lab-5")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
