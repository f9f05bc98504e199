package main

import (
	"errors"
	"fmt"
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
		Short: "Who did what when, in the last run of lab N (make trace-N)",
		Long: `trace shows the control loop of a run as a timeline: what the check did in your place, what your operator
wrote because of it, and what Kubernetes made of that. Times count from the creation of the Memcached.
Without N it takes the lab that was checked last in the workspace.`,
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
	cmd.Flags().StringVar(&check, "check", "", "show the timelines of this check (default: the one under the verdict)")
	return cmd
}

// traced is the result of the workspace for the lab that is asked for, or the latest of all labs.
func (a *app) traced(c *course.Course, args []string) (latest *verdict.Result, err error) {
	labs, missing := c.Labs, exit.Usage("nothing was checked yet: run make lab-1%s first", a.workspaceArg())
	if len(args) > 0 {
		n, err := cli.LabNumber(c, args[0])
		if err != nil {
			return nil, err
		}
		labs, missing = c.Labs[n-1:n], exit.Usage("lab %d was not checked yet: run make lab-%[1]d%s first", n, a.workspaceArg())
	}
	for _, lab := range labs {
		result, err := verdict.Read(a.State, a.workspace, lab.Number)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, err
		case latest == nil || !result.Started.Before(latest.Started):
			latest = result
		}
	}
	if latest == nil {
		return nil, missing
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
	switch {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(a.Out, "That run has no trace: your code did not compile, the lab runs no operator, or the artifacts were removed.")
		return nil
	case err != nil:
		return err
	}
	timelines := recording.Timelines()
	shown := []*trace.Timeline{verdict.TimelineOf(result, timelines)}
	if check != "" || shown[0] == nil {
		shown = slices.DeleteFunc(slices.Clone(timelines), func(t *trace.Timeline) bool { return t.Check != check })
	}
	a.listTimelines(result, timelines, shown)
	if check != "" && len(shown) == 0 {
		return exit.Usage("no timeline of a check %s; the list above has the checks of lab %d that made a Memcached", check, result.Lab)
	}
	for _, t := range shown {
		fmt.Fprintf(a.Out, "\n%s: Memcached %s in the namespace %s\n\n", plain.Line(t.Check), plain.Line(t.Of.Name), plain.Line(t.Of.Namespace))
		t.Print(a.Out)
	}
	return nil
}

// listTimelines names the checks that have a timeline, and marks those that are shown. A run can judge several labs.
func (a *app) listTimelines(result *verdict.Result, timelines, shown []*trace.Timeline) {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  CHECK\tSTATE\tMEMCACHEDS\tACTIONS")
	for _, c := range result.Checks {
		memcacheds, actions, mark := 0, 0, " "
		for _, t := range timelines {
			if t.Check != c.ID {
				continue
			}
			memcacheds, actions = memcacheds+1, actions+len(t.Actions)
			if slices.Contains(shown, t) {
				mark = "→"
			}
		}
		if memcacheds > 0 {
			fmt.Fprintf(w, "%s %s\t%s\t%d\t%d\n", mark, c.ID, c.State, memcacheds, actions)
		}
	}
	_ = w.Flush()
	fmt.Fprintf(a.Out, "`make trace-%d CHECK=id%s` shows another check.\n", result.Lab, a.workspaceArg())
}
