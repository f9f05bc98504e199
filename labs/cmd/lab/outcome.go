package main

import (
	"context"
	"fmt"
	"time"

	"github.com/example/operator-lab/clusters"
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

// answerFunc is told the results of a check, before its cluster is deleted.
type answerFunc func([]*verdict.Result, *clusters.Cluster)

// reporting makes answer tell the room's board as well, if there is one, while the cluster is being deleted.
// sent waits for what is left of that, a second at most.
func (a *app) reporting(ctx context.Context, answer answerFunc) (reported answerFunc, sent func()) {
	wait := func() {}
	reported = func(results []*verdict.Result, cluster *clusters.Cluster) {
		answer(results, cluster)
		wait = roomclient.Report(ctx, a.State, results, a.Progress)
	}
	return reported, func() { wait() }
}
