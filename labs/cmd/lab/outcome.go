package main

import (
	"context"
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// countPeriod is how often who waits for a verdict reads how many checks hold.
const countPeriod = 4 * time.Second

// onOutcome tells during one run what is certain before the verdict: each check that fails as soon as it has, each that
// failed last time as soon as it holds, and now and then how many do.
func (a *app) onOutcome(c *course.Course) func(verdict.Outcome) {
	var counted time.Time
	return func(o verdict.Outcome) {
		if counted.IsZero() {
			counted = time.Now()
		}
		switch {
		case o.State == verdict.Failed, o.Fixed:
			verdict.PrintOutcome(a.Err, o, c.Hint)
		case time.Since(counted) >= countPeriod:
			counted = time.Now()
			a.Progress(fmt.Sprintf("%d of %d checks hold so far", o.Holding, o.All))
		}
	}
}

// report tells results to the board of the classroom that was joined, if one was.
func (a *app) report(ctx context.Context, results []*verdict.Result) {
	if err := roomclient.Report(ctx, a.State, results); err != nil {
		a.Progress(err.Error())
	}
}
