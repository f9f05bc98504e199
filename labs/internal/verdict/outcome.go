package verdict

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
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

// Outcomes finds out what is certain while a suite is running. A check that failed waits for those that it requires:
// if one of them fails, too, that one is the answer. A failure of the last check is not announced, because the verdict
// follows at once. This is for the screen while the checks run; verdicts come from [Classify].
type Outcomes struct {
	labs      []*course.Lab
	requires  map[string][]string
	checks    []Check // in the course's order; without a state until it is known
	unblocked bool
	report    func(Outcome)
	told      map[string]bool
}

// NewOutcomes has report called for the checks of labs, each once at most. canRunPods says what the cluster is able to
// judge, unblocked that every failed check is told in its own right.
func NewOutcomes(labs []*course.Lab, canRunPods, unblocked bool, report func(Outcome)) *Outcomes {
	o := &Outcomes{labs: labs, requires: requirements(labs), unblocked: unblocked, report: report, told: map[string]bool{}}
	for _, lab := range labs {
		for _, c := range lab.Checks {
			answer := Check{ID: c.ID, Title: c.Title, Lab: lab.Number}
			if !canRunPods && c.NeedsPods() {
				answer.State = NotChecked
			}
			o.checks = append(o.checks, answer)
		}
	}
	return o
}

// Hear takes the report of a check that has ended.
func (o *Outcomes) Hear(spec types.SpecReport) {
	o.judge(spec)
	now := slices.Clone(o.checks)
	if !o.unblocked {
		Block(now, o.labs)
	}
	for _, c := range now {
		if !o.told[c.ID] && o.certain(c) {
			o.told[c.ID] = true
			o.report(Outcome{Check: c, Asked: c.Lab, Holding: o.count(Passed), All: len(o.checks) - o.count(NotChecked)})
		}
	}
}

// judge gives a check that has ended its state. One that the suite could not judge stays without.
func (o *Outcomes) judge(spec types.SpecReport) {
	id := checkID(spec)
	i := slices.IndexFunc(o.checks, func(c Check) bool { return c.ID == id })
	if i < 0 || o.checks[i].State != "" {
		return
	}
	c := o.checks[i]
	ended := map[string]types.SpecReport{id: spec}
	answer, broken := classify(ended, &course.Lab{Number: c.Lab}, course.Check{ID: id, Title: c.Title})
	if broken == "" && answer.Cause != finding.CauseMachine {
		o.checks[i] = answer
	}
}

func (o *Outcomes) certain(c Check) bool {
	if c.State == Passed {
		return true
	}
	return c.State == Failed && o.count("") > 0 && (o.unblocked || !slices.ContainsFunc(o.requires[c.ID], o.unknown))
}

func (o *Outcomes) unknown(id string) bool {
	return slices.ContainsFunc(o.checks, func(c Check) bool { return c.ID == id && c.State == "" })
}

func (o *Outcomes) count(s State) int {
	r := Result{Checks: o.checks}
	return r.Count(s)
}

// outcomePeriod is how often to look for new outcomes. The folder may be on a drive that announces nothing.
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
		followOutcomes(ctx, filepath.Join(r.artifacts, suite.OutcomesFile), outcomes.Hear)
	}()
	return func() {
		cancel()
		<-done
	}
}

// followOutcomes reads what the suite's processes add to a file, until ctx ends.
func followOutcomes(ctx context.Context, path string, hear func(types.SpecReport)) {
	tick := time.NewTicker(outcomePeriod)
	defer tick.Stop()
	for read := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			read += newOutcomes(path, read, hear)
		}
	}
}

// newOutcomes reads the whole lines behind an offset, and says how long they are.
func newOutcomes(path string, offset int64, hear func(types.SpecReport)) (n int64) {
	f, err := os.Open(path)
	if err != nil {
		return 0 // no check has ended yet
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return n // the rest of a line comes later
		}
		n += int64(len(line))
		var spec types.SpecReport
		if json.Unmarshal(line, &spec) == nil {
			hear(spec)
		}
	}
}
