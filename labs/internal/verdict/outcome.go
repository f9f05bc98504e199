package verdict

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Outcome is what is certain about one check while the others are still running.
type Outcome struct {
	// Check is one that holds, or one that failed by itself: not for another one, and not for the machine.
	Check
	// Asked is the number of the lab that was asked for; the check may belong to an earlier one.
	Asked int
	// Fixed says that the check holds, and failed last time.
	Fixed bool
	// Holding is how many checks hold so far, of All that are asked.
	Holding, All int
}

// Outcomes finds out what is certain while a suite is running. A check that failed waits for the result of those that could
// explain it. A failure of the last check is not announced, because the verdict follows at once.
type Outcomes struct {
	labs      []*course.Lab
	checks    []Check // in the course's order; without a state until it is known
	unblocked bool
	report    func(Outcome)
	told      map[string]bool
}

// NewOutcomes has report called for the checks of labs, each once at most. canRunPods says what the cluster can judge, unblocked
// that every failed check is told in its own right.
func NewOutcomes(labs []*course.Lab, canRunPods, unblocked bool, report func(Outcome)) *Outcomes {
	return &Outcomes{labs: labs, checks: checksOf(labs, canRunPods), unblocked: unblocked, report: report, told: map[string]bool{}}
}

// Hear takes the result of a check that has ended.
func (o *Outcomes) Hear(r suite.Result) {
	i := slices.IndexFunc(o.checks, func(c Check) bool { return c.ID == r.Check && c.State == "" })
	if i < 0 {
		return
	}
	if answer := o.checks[i]; answer.add(r) == nil {
		o.checks[i] = answer
	}
	now := slices.Clone(o.checks)
	if !o.unblocked {
		for i := range now { // what could explain a failure, and has not ended, might fail
			if now[i].State == "" {
				now[i].State = Failed
			}
		}
		block(now, o.labs)
	}
	all := Result{Checks: o.checks}
	for i, c := range now {
		certain := c.State == Passed || c.State == Failed && all.Count("") > 0
		if o.checks[i].State != "" && certain && !o.told[c.ID] {
			o.told[c.ID] = true
			o.report(Outcome{Check: c, Asked: c.Lab, Holding: all.Count(Passed), All: len(all.Checks) - all.Count(NotChecked)})
		}
	}
}

// outcomePeriod is how often to look for new results. The folder may be on a drive that announces nothing.
const outcomePeriod = 100 * time.Millisecond

// listen tells outcomes of the suite until the returned function is called.
func (r *run) listen(ctx context.Context, numbers []int) (end func()) {
	if r.OnOutcome == nil {
		return func() {}
	}
	outcomes := NewOutcomes(r.wanted, r.cluster.RealPods, r.Unblocked, func(o Outcome) {
		if !slices.Contains(numbers, o.Lab) {
			o.Asked, o.Regression = slices.Max(numbers), r.held[o.Lab]
		}
		o.Fixed = o.State == Passed && slices.Contains(r.failing, o.ID)
		r.OnOutcome(o)
	})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(outcomePeriod)
		defer tick.Stop()
		for reader := (&suite.Reader{Path: filepath.Join(r.artifacts, suite.ResultsFile)}); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			results, _ := reader.Next() // who gives the verdict reads all of it, and its errors
			for _, result := range results {
				outcomes.Hear(result)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
