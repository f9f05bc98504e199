package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

It shows what the check did in your place, what your operator wrote because of it, and what Kubernetes made of that, with the seconds since
the first of it. Without N it takes the lab that was checked last in the workspace.`,
		cobra.MaximumNArgs(1), func(_ context.Context, args []string) error {
			result, title, err := a.traced(args)
			if err != nil {
				return err
			}
			return a.trace(result, title, check)
		})
	cmd.Flags().StringVar(&check, "check", "", "show this check (default: the one that failed first)")
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
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var actions map[string][]trace.Action
	if err == nil {
		actions = recording.ByCheck()
	}
	if len(actions) == 0 {
		fmt.Fprintln(a.Out, "That run has no trace: your code did not compile, the lab runs no operator, or the artifacts were removed.")
		return nil
	}
	if check != "" && actions[check] == nil {
		return exit.Usage("no check %s did anything in the last run of lab %d: make trace-%[2]d%s lists those that did", check, result.Lab, a.workspaceArg())
	}
	check = cmp.Or(check, verdict.CheckToTrace(result, actions))
	if shown := actions[check]; len(shown) > 0 {
		fmt.Fprintf(a.Out, "\n%s\n\n", plain.Line(check))
		trace.Print(a.Out, shown[0].At, shown)
	}
	fmt.Fprintf(a.Out, "\n`make trace-%d CHECK=id%s` shows another check: %s\n", result.Lab, a.workspaceArg(),
		plain.Line(strings.Join(slices.Sorted(maps.Keys(actions)), ", ")))
	return nil
}
