package verdict

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestAFailureOnABusyMachineIsNobodys(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	// One check from the tenth second to the twelfth, and one from the twentieth to the fortieth.
	short := Check{ID: "short", State: Failed, Began: at(10), Ended: at(12)}
	long := Check{ID: "long", State: Failed, Began: at(20), Ended: at(40)}
	holds := Check{ID: "holds", State: Passed, Began: at(0), Ended: at(60)}
	waits := Check{ID: "waits", State: Blocked, Began: at(0), Ended: at(60)}
	for name, tc := range map[string]struct {
		crowd     int // threads for each processor
		from, to  int // when they were there
		checks    []Check
		defect    string
		says, fix string // "": it is the learner's
	}{
		"nobody else":              {0, 0, 60, []Check{short, long}, "", "", ""},
		"two for each processor":   {2, 0, 60, []Check{short, long}, "", "", ""},
		"many":                     {20, 0, 60, []Check{short, holds}, "", "while the check short ran", "make lab-5"},
		"many at the second":       {20, 20, 40, []Check{short, long}, "", "while the check long ran", "make lab-5"},
		"many before a short one":  {20, 7, 9, []Check{short}, "", "while the check short ran", "make lab-5"},
		"many long before it":      {20, 0, 6, []Check{short}, "", "", ""},
		"many after it":            {20, 13, 19, []Check{short}, "", "", ""},
		"nothing failed by itself": {20, 0, 60, []Check{holds, waits}, "", "", ""},
		"many, and no answers":     {20, 0, 60, nil, "the check short did not run", "while the checks ran", "make lab-5"},
		"no answers":               {0, 0, 60, nil, "the check short did not run", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{started: began, others: func(from, to time.Time) float64 {
				if from.After(at(tc.to)) || to.Before(at(tc.from)) {
					return 0
				}
				return float64(tc.crowd * runtime.NumCPU())
			}}
			err := r.tooBusy(Classification{Checks: tc.checks, Defect: tc.defect}, []int{5})
			if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) || err != nil && !strings.Contains(err.Error(), tc.fix) {
				t.Errorf("%v, want %q and %q", err, tc.says, tc.fix)
			}
		})
	}
}
