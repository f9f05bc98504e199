package main

import (
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
)

func newTraceCommand(a *app) *cobra.Command {
	var check string
	cmd := cli.Command("trace [N]", `Who did what when in the last run (make trace, make trace-N)

It shows what the check did in your place, what your operator wrote because of it, and what Kubernetes made of that, with the seconds since
the first of it. A page for a browser, in the artifacts of the run, shows all checks as timelines.`,
		cobra.MaximumNArgs(1), func(_ context.Context, args []string) error { return a.trace(check, args...) })
	cmd.Flags().StringVar(&check, "check", "", "show this check (default: the one that failed first, or else the first one)")
	return cmd
}

func (a *app) trace(check string, lab ...string) error {
	c, n, err := a.lab(lab...)
	if err != nil {
		return err
	}
	result, err := a.last(n)
	if err != nil {
		return err
	}
	a.Say("Lab %d  %s: %s on %s", n, c.Labs[n-1].Title, result.Verdict, minute(result.Started))
	actions, err := trace.ByCheck(filepath.Join(result.Artifacts, trace.File))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(actions) == 0 {
		a.Say("That run has no trace: your code did not compile, the lab runs no operator, or the artifacts were removed.")
		return nil
	}
	if check != "" && actions[check] == nil {
		return exit.Usage("no check %s did anything in the last run of lab %d: make trace-%[2]d%s lists those that did", check, result.Lab, a.workspaceArg())
	}
	if failed := result.First(); check == "" && failed != nil {
		check = failed.ID
	}
	for _, c := range result.Checks {
		if check == "" && c.Lab == n && actions[c.ID] != nil {
			check = c.ID
		}
	}
	if shown := actions[check]; len(shown) > 0 {
		fmt.Fprintf(a.Out, "\n%s\n\n", plain.Line(check))
		trace.Print(a.Out, shown[0].At, shown)
	}
	path, err := writeTimeline(result, fmt.Sprintf("Lab %d: %s", n, c.Labs[n-1].Title), check, actions)
	if err != nil {
		return err
	}
	a.Say("\nAll checks as a timeline, for a browser: %s", plain.Path(path))
	a.Say("`make trace-%d CHECK=id%s` shows another check: %s", result.Lab, a.workspaceArg(),
		plain.Line(strings.Join(slices.Sorted(maps.Keys(actions)), ", ")))
	return nil
}
