package verdict

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/fix"
)

const (
	// logsLimit is how long the logs of a cluster may take to be copied.
	logsLimit = 15 * time.Second
	// defect is what to do about an error that no package knows a fix of.
	defect = fix.Doctor + "; if that finds nothing, report this defect of the lab, with the artifacts"
)

// unable is why the machine kept checks from being judged. It is nil when a check has failed, and when all were judged.
func unable(checks []Check, numbers []int) *clusters.Problem {
	var late []string
	var load float64
	var problem *clusters.Problem
	for _, c := range checks {
		switch {
		case c.State == Failed:
			return nil
		case c.State == NotJudged && c.Load == 0:
			problem = &clusters.Problem{What: fmt.Sprintf("the check %s could not run: it needs %s", c.ID, c.Expected), Err: errors.New(c.Seen)}
		case c.State == NotJudged:
			late, load = append(late, c.ID), max(load, c.Load)
		}
	}
	if problem == nil && len(late) > 0 {
		problem = &clusters.Problem{
			What: fmt.Sprintf("this machine was busy: its load average was %.0f on %d processors when the time of %s ran out",
				load, runtime.NumCPU(), strings.Join(late, ", ")),
			Fix: "close other programs (top shows which), then " + again(numbers),
		}
	}
	return problem
}

// unjudged are the results of a run that err kept from judging. That is never the learner's fault.
func (r *run) unjudged(ctx context.Context, numbers []int, err error) []*Result {
	environment := r.diagnose(ctx, err, numbers)
	if r.cluster != nil {
		logs, cancel := context.WithTimeout(ctx, logsLimit)
		defer cancel()
		_ = r.Clusters.Provider().CollectLogs(logs, r.cluster.Name, filepath.Join(r.artifacts, r.cluster.Provider))
	}
	return r.resultsOf(numbers, r.allBlocked("environment"), environment)
}

// allBlocked are all checks of the run, which something kept from running.
func (r *run) allBlocked(by string) []Check {
	all := checksOf(r.wanted, true)
	for i := range all {
		all[i].State, all[i].BlockedBy = Blocked, by
	}
	return all
}

// diagnose says what is wrong with the machine and what fixes it.
func (r *run) diagnose(ctx context.Context, err error, numbers []int) Finding {
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok && r.cluster != nil && !r.watched {
		problem, ok = errors.AsType[*clusters.Problem](r.Clusters.Healthy(ctx, r.cluster))
	}
	if !ok {
		return Finding{Finding: err.Error(), Fix: defect}
	}
	command := fix.Command(problem)
	if command == fix.Down { // the run deletes its own cluster
		command = again(numbers)
	}
	return Finding{Finding: problem.Finding(), Fix: command}
}

// again is the command that judges the same labs on another fresh cluster.
func again(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("make lab-%d, which makes a fresh cluster", numbers[0])
	}
	return "make labs, which makes a fresh cluster"
}
