package verdict

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	// doctorLimit bounds the doctor's visit after a run. On a living machine it takes a second or two.
	doctorLimit = 30 * time.Second
	// logsLimit is how long the logs of a cluster may take to be copied. They are for whoever looks into what
	// is wrong with the machine; nobody waits longer for them.
	logsLimit = 15 * time.Second
)

// monitored runs the suite on a cluster that is watched, and ends it when the cluster has to be given up:
// its checks would only wait for what cannot come.
func (r *run) monitored(ctx context.Context, config suite.Config) ([]suite.Result, error) {
	monitor, watched, err := r.Clusters.Monitor(ctx, r.cluster)
	if err != nil {
		return nil, err
	}
	defer monitor.End()
	r.monitor = monitor
	results, err := r.tools.RunSuite(watched, config)
	if err != nil && ctx.Err() == nil {
		if problem := monitor.Problem(ctx); problem != nil {
			err = problem
		}
	}
	return results, err
}

// killWhenLost has a suite killed whose cluster had to be given up: there it could only wait for its own
// clean-up to fail. The learner's program ends with it; see package supervisor.
func killWhenLost(ctx context.Context, cmd *exec.Cmd) {
	interrupt := cmd.Cancel
	cmd.Cancel = func() error {
		_, lost := errors.AsType[*clusters.Problem](context.Cause(ctx))
		if lost || interrupt == nil {
			process.Kill(cmd)
			return cmd.Process.Kill()
		}
		return interrupt()
	}
}

// environment asks whether a failure may be the machine's fault.
func (r *run) environment(ctx context.Context, c Classification, numbers []int) Finding {
	failed := slices.ContainsFunc(c.Checks, func(c Check) bool { return c.State == Failed || c.State == NotJudged })
	if !failed && c.Defect == "" {
		return Finding{}
	}
	err := r.monitor.Problem(ctx)
	if err == nil {
		err = shortage(ctx, r.Course.Root)
	}
	if err == nil {
		err = incapable(c.Checks)
	}
	if err == nil {
		err = busy(c.Checks, numbers)
	}
	switch {
	case err != nil:
		return r.diagnose(ctx, err, numbers)
	case c.Defect != "":
		return Finding{Finding: c.Defect, Fix: defect}
	}
	return Finding{}
}

// incapable is what the machine could not do for a check, nil when it could do everything.
func incapable(checks []Check) error {
	for _, c := range checks {
		if c.State == Failed && c.Cause == finding.CauseMachine {
			return &clusters.Problem{What: fmt.Sprintf("the check %s could not be asked for want of %s", c.ID, c.Expected), Err: errors.New(c.Seen)}
		}
	}
	return nil
}

// unjudged are the results of a run that err ended before it could judge. That is never the learner's
// fault.
func (r *run) unjudged(ctx context.Context, numbers []int, err error) ([]*Result, error) {
	environment := r.diagnose(ctx, err, numbers)
	if ctx.Err() != nil {
		return nil, interrupted(ctx, err)
	}
	if r.cluster != nil {
		r.keepLogs(ctx, environment)
	}
	return r.resultsOf(numbers, r.notAsked("environment"), environment), nil
}

// notAsked are all checks of the run, which nobody asked because of something else.
func (r *run) notAsked(because string) []Check {
	var all []Check
	for _, lab := range r.wanted {
		for _, c := range lab.Checks {
			all = append(all, Check{ID: c.ID, Title: c.Title, Lab: lab.Number, State: Blocked, BlockedBy: because})
		}
	}
	return all
}

// diagnose says what is wrong with the machine and what fixes it. Where the problem itself does not
// know, the doctor is asked, so that nobody has to.
func (r *run) diagnose(ctx context.Context, err error, numbers []int) Finding {
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok && r.cluster != nil && r.monitor == nil {
		// It has never been looked at since it was made.
		problem, ok = errors.AsType[*clusters.Problem](r.Clusters.Healthy(ctx, r.cluster))
	}
	if !ok {
		problem = &clusters.Problem{What: err.Error()}
	}
	command := fix.Command(problem)
	switch {
	case command == fix.Doctor:
		if f, ill := r.doctor(ctx); ill {
			return Finding{Finding: fmt.Sprintf("%s: %s\n%s", f.Name, f.Detail, problem.Finding()), Fix: f.Fix}
		}
	case command == fix.Down && r.Cluster == nil:
		// It was made for this run alone, and goes with it.
		return Finding{Finding: problem.Finding(), Fix: again(numbers)}
	}
	if !ok {
		return Finding{Finding: problem.Finding(), Fix: defect}
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
	engine, needed := r.engine()
	return doctor.First(doctor.Run(ctx, doctor.Options{
		Dir: r.Course.Root, Engine: engine, NoEngine: !needed, NodeImage: r.nodeImage, Commands: fix.Commands(),
	}))
}

// engine is the container engine that the run's clusters need, if they need one.
func (r *run) engine() (name string, needed bool) {
	name = r.Clusters.Engine()
	return name, name != ""
}

// nodeImage is the run's node image, if it is on this machine.
func (r *run) nodeImage(ctx context.Context, engine string) (ref string, stale bool, err error) {
	available, err := nodeimage.Available(ctx, engine, r.NodeImage.Ref)
	if err != nil || !available {
		return "", false, err
	}
	return r.NodeImage.Ref, r.NodeImage.Stale, nil
}

// blamed is err as a [*clusters.Problem] that names what is wrong with the machine, for what goes wrong
// where not even a result can be written.
func (r *run) blamed(ctx context.Context, err error, numbers []int) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	f := r.diagnose(ctx, err, numbers)
	return &clusters.Problem{What: f.Finding, Fix: f.Fix}
}

// keepLogs copies what the cluster's nodes logged into the run's artifacts when the environment is at
// fault. A cluster that has none to give has been told about already.
func (r *run) keepLogs(ctx context.Context, environment Finding) {
	if environment.Finding == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logsLimit)
	defer cancel()
	_ = r.Clusters.Provider().CollectLogs(ctx, r.cluster.Name, filepath.Join(r.artifacts, r.cluster.Provider))
}
