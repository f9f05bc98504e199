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
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/fix"
)

const (
	// doctorLimit bounds the doctor's visit after a run. On a living machine it takes a second or two.
	doctorLimit = 30 * time.Second
	// logsLimit is how long the logs of a cluster may take to be copied.
	logsLimit = 15 * time.Second

	defect = "this is a defect of the lab: please report it with the artifacts"
)

// unable is why the machine kept checks from being judged, nil when a check has failed for certain.
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

// diagnose says what is wrong with the machine and what fixes it. Where the problem itself does not know, it asks the doctor.
func (r *run) diagnose(ctx context.Context, err error, numbers []int) Finding {
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok && r.cluster != nil && !r.watched {
		problem, ok = errors.AsType[*clusters.Problem](r.Clusters.Healthy(ctx, r.cluster))
	}
	if !ok {
		problem = &clusters.Problem{What: err.Error()}
	}
	command := fix.Command(problem)
	switch command {
	case fix.Doctor:
		if f, ill := r.doctor(ctx); ill {
			return Finding{Finding: fmt.Sprintf("%s: %s\n%s", f.Name, f.Detail, problem.Finding()), Fix: f.Fix}
		}
	case fix.Down: // it was made for this run alone, and goes with it
		command = again(numbers)
	}
	if !ok {
		command = defect
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

// doctor looks for what explains best that no lab could run.
func (r *run) doctor(ctx context.Context) (doctor.Finding, bool) {
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	engine := r.Clusters.Engine()
	return doctor.First(doctor.Run(ctx, doctor.Options{
		Dir: r.Course.Root, Engine: engine, NoEngine: engine == "", NodeImage: r.nodeImage, Commands: fix.Commands(),
	}))
}

// nodeImage is the run's node image, if it is on this machine.
func (r *run) nodeImage(ctx context.Context, engine string) (ref string, stale bool, err error) {
	available, err := nodeimage.Available(ctx, engine, r.NodeImage.Ref)
	if err != nil || !available {
		return "", false, err
	}
	return r.NodeImage.Ref, r.NodeImage.Stale, nil
}

// blamed is err as a [*clusters.Problem] that names what is wrong with the machine, for what goes wrong where not even a result
// can be written.
func (r *run) blamed(ctx context.Context, err error, numbers []int) error {
	if ctx.Err() != nil {
		return err
	}
	f := r.diagnose(ctx, err, numbers)
	return &clusters.Problem{What: f.Finding, Fix: f.Fix}
}
