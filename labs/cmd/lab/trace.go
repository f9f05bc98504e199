package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newTraceCommand(a *app) *cobra.Command {
	var check string
	cmd := &cobra.Command{
		Use:   "trace [N]",
		Short: "Who did what when, in the last run of step N (make trace-N)",
		Long: `trace tells the control loop of a run as a timeline: what the check did in your place, what your operator
wrote because of it, and what Kubernetes made of that. Times count from the moment the check touched the
world. Without N it takes the step that was checked last.`,
		Args: cli.Arguments(0, 1, "trace, or lab trace N"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.Course()
			if err != nil {
				return err
			}
			result, err := a.traced(c, args)
			if err != nil {
				return err
			}
			return a.trace(c, result, check)
		},
	}
	cmd.Flags().StringVar(&check, "check", "", "tell the timelines of this check (default: the one under the verdict)")
	return cmd
}

// traced is the result whose run is asked about.
func (a *app) traced(c *course.Course, args []string) (*verdict.Result, error) {
	if len(args) == 0 {
		return a.latest(c)
	}
	n, err := cli.LabNumber(c, args[0])
	if err != nil {
		return nil, err
	}
	result, err := verdict.Read(a.State, a.workspace, n)
	if errors.Is(err, os.ErrNotExist) {
		return nil, exit.Usage("lab %d was not checked yet: run make lab-%d first", n, n)
	}
	return result, err
}

// latest is the result of the run that began last.
func (a *app) latest(c *course.Course) (*verdict.Result, error) {
	var latest *verdict.Result
	for _, lab := range c.Labs {
		result, err := verdict.Read(a.State, a.workspace, lab.Number)
		if err == nil && (latest == nil || !result.Started.Before(latest.Started)) {
			latest = result
		}
	}
	if latest == nil {
		return nil, exit.Usage("nothing was checked yet: run make lab-1 first")
	}
	return latest, nil
}

func (a *app) trace(c *course.Course, result *verdict.Result, check string) error {
	lab, err := c.Lab(result.Lab)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Lab %d  %s: %s on %s\n\n", lab.Number, lab.Title, result.Verdict, result.Started.Local().Format("2006-01-02 15:04"))
	recording, err := trace.ReadFile(filepath.Join(result.Artifacts, trace.File))
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(a.Out, untraced(result))
		return nil
	}
	if err != nil {
		return err
	}
	// A run can judge several labs; told are the timelines of this one.
	timelines := slices.DeleteFunc(recording.Timelines(), func(s *trace.Timeline) bool { return checkIn(result, s.Check) == nil })
	if len(timelines) == 0 {
		fmt.Fprintln(a.Out, "No check of that run came so far as to make a Memcached.")
		return nil
	}
	shown := []*trace.Timeline{verdict.TimelineOf(result, timelines)}
	if check != "" {
		shown = slices.DeleteFunc(slices.Clone(timelines), func(s *trace.Timeline) bool { return s.Check != check })
	}
	a.listStories(result, timelines, shown)
	if shown = slices.DeleteFunc(shown, func(s *trace.Timeline) bool { return s == nil }); len(shown) == 0 {
		return a.noTimeline(result, check)
	}
	for _, s := range shown {
		announce(a.Out, s, checkIn(result, s.Check).Title)
		s.Print(a.Out)
	}
	return nil
}

// announce says what a timeline is of. An object's name is what an API server said it is, and a room may have lent that.
func announce(w io.Writer, s *trace.Timeline, title string) {
	fmt.Fprintf(w, "\n%s: %s\n", s.Check, title)
	fmt.Fprintf(w, "Memcached %s in the namespace %s\n\n", plain.Line(s.Of.Name), plain.Line(s.Of.Namespace))
}

// untraced says why a run has no trace.
func untraced(result *verdict.Result) string {
	switch {
	case result.Build != nil:
		return "Your code did not compile in that run, so there is nothing to tell."
	case result.Lab < firstWithManager:
		return fmt.Sprintf("Labs 1 to %d run no operator: nobody acts in them but the check. Traces begin with lab %d.",
			firstWithManager-1, firstWithManager)
	default:
		return "That run left no trace: it was cut short, or its artifacts were removed."
	}
}

// firstWithManager is the first lab that judges a running operator.
const firstWithManager = 4

// noTimeline says why there is none for the check that was asked for, or for the one that failed.
func (a *app) noTimeline(result *verdict.Result, check string) error {
	if check == "" {
		fmt.Fprintln(a.Out, "\nThe check that failed first made no Memcached. `--check ID` tells another's timeline.")
		return nil
	}
	if checkIn(result, check) == nil {
		return exit.Usage("%s is no check of lab %d; the list above has those with a timeline", check, result.Lab)
	}
	return exit.Usage("the check %s made no Memcached; the list above has those with a timeline", check)
}

func checkIn(result *verdict.Result, id string) *verdict.Check {
	i := slices.IndexFunc(result.Checks, func(c verdict.Check) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &result.Checks[i]
}

// listStories names the checks that have a timeline, and points at what follows.
func (a *app) listStories(result *verdict.Result, timelines, shown []*trace.Timeline) {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  CHECK\tSTATE\tMEMCACHEDS\tDEEDS")
	for _, c := range result.Checks {
		memcacheds, actions, mark := 0, 0, " "
		for _, s := range timelines {
			if s.Check != c.ID {
				continue
			}
			memcacheds++
			actions += len(s.Actions)
			if slices.Contains(shown, s) {
				mark = "→"
			}
		}
		if memcacheds > 0 {
			fmt.Fprintf(w, "%s %s\t%s\t%d\t%d\n", mark, c.ID, c.State, memcacheds, actions)
		}
	}
	_ = w.Flush()
	if len(timelines) > len(shown) {
		fmt.Fprintf(a.Out, "`bin/lab trace %d --check ID` tells another.\n", result.Lab)
	}
}
