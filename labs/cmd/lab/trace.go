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
	cmd := cli.Command("trace N", `Who did what when, in the last run of lab N (make trace-N)

It shows what the check did in your place, what your operator wrote because of it, and what Kubernetes made of that, with the seconds since
the first of it.`,
		cobra.ExactArgs(1), func(_ context.Context, args []string) error { return a.trace(args[0], check) })
	cmd.Flags().StringVar(&check, "check", "", "show this check (default: the one that failed first)")
	return cmd
}

func (a *app) trace(lab, check string) error {
	c, n, err := a.lab(lab)
	if err != nil {
		return err
	}
	result, err := a.last(n)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Lab %d  %s: %s on %s\n", n, c.Labs[n-1].Title, result.Verdict, minute(result.Started))
	actions, err := trace.ByCheck(filepath.Join(result.Artifacts, trace.File))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
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
