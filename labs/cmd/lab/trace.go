package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newTraceCommand(a *app) *cobra.Command {
	var check string
	cmd := command("trace [N]", `Who did what when, in the last run of lab N (make trace-N)

It shows the control loop of a run as a timeline: what the check did in your place, what your operator wrote because of it, and what
Kubernetes made of that. Times count from the creation of the Memcached. Without N it takes the lab that was checked last in the workspace.`,
		cobra.MaximumNArgs(1), func(_ context.Context, args []string) error {
			result, title, err := a.traced(args)
			if err != nil {
				return err
			}
			return a.trace(result, title, check)
		})
	cmd.Flags().StringVar(&check, "check", "", "show the timelines of this check (default: the one under the verdict)")
	return cmd
}

// traced is the result of the workspace for the lab that is asked for, or the latest of all labs, with the lab's title.
func (a *app) traced(args []string) (latest *verdict.Result, title string, err error) {
	c, err := a.Course()
	if err != nil {
		return nil, "", err
	}
	labs, missing := c.Labs, exit.Usage("nothing was checked yet: run make lab-1%s first", a.workspaceArg())
	if len(args) > 0 {
		n, err := cli.LabNumber(c, args[0])
		if err != nil {
			return nil, "", err
		}
		labs, missing = c.Labs[n-1:n], exit.Usage("lab %d was not checked yet: run make lab-%[1]d%s first", n, a.workspaceArg())
	}
	for _, lab := range labs {
		result, err := verdict.Read(a.State, a.workspace, lab.Number)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, "", err
		case latest == nil || !result.Started.Before(latest.Started):
			latest, title, missing = result, lab.Title, nil
		}
	}
	return latest, title, missing
}

func (a *app) trace(result *verdict.Result, title, check string) error {
	fmt.Fprintf(a.Out, "Lab %d  %s: %s on %s\n", result.Lab, title, result.Verdict, minute(result.Started))
	recording, err := trace.ReadFile(filepath.Join(result.Artifacts, trace.File))
	switch {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(a.Out, "That run has no trace: your code did not compile, the lab runs no operator, or the artifacts were removed.")
		return nil
	case err != nil:
		return err
	}
	timelines := recording.Timelines()
	shown := slices.DeleteFunc(slices.Clone(timelines), func(t *trace.Timeline) bool { return t.Check != check })
	if t := verdict.TimelineOf(result, timelines); check == "" && t != nil {
		shown = []*trace.Timeline{t}
	}
	if check != "" && len(shown) == 0 {
		return exit.Usage("no check %s made a Memcached in the last run of lab %d: make trace-%[2]d%s lists those that did", check, result.Lab, a.workspaceArg())
	}
	for _, t := range shown {
		fmt.Fprintf(a.Out, "\n%s: Memcached %s in the namespace %s\n\n", plain.Line(t.Check), plain.Line(t.Of.Name), plain.Line(t.Of.Namespace))
		t.Print(a.Out)
	}
	var others []string
	for _, t := range timelines {
		others = append(others, plain.Line(t.Check))
	}
	slices.Sort(others)
	fmt.Fprintf(a.Out, "\n`make trace-%d CHECK=id%s` shows the trace of a check: %s\n", result.Lab, a.workspaceArg(), strings.Join(slices.Compact(others), ", "))
	return nil
}
