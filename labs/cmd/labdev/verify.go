package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newLintCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "lint",
		Short: "What is wrong with the course and can be seen without running it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			problems, err := a.lint(cmd.Context())
			return a.report("The course is in order.", problems, err)
		},
	}
}

func newVerifyCommand(a *app) *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "All that lint finds, stages, generated files (make verify does more)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), fix) },
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "make the generated files anew")
	return cmd
}

// report lists problems for an author; any is a failure. fine is what is said when there are none.
func (a *app) report(fine string, problems []course.Problem, err error) error {
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(a.Out, p)
	}
	if len(problems) > 0 {
		fmt.Fprintf(a.Out, "\n%s.\n", cli.Count(len(problems), "problem"))
		return exit.ErrFail
	}
	fmt.Fprintln(a.Out, fine)
	return nil
}

// lint compares manifests, lessons, operator/, wrong answers and the compiled suite with each other.
func (a *app) lint(ctx context.Context) ([]course.Problem, error) {
	c, err := a.Course()
	if err != nil {
		return nil, err
	}
	checks, err := a.checks(ctx)
	if err != nil {
		return nil, err
	}
	problems, err := c.Lint(checks)
	if err != nil {
		return nil, err
	}
	wrong, err := mutants.Lint(ctx, c)
	return append(problems, wrong...), err
}

// checks asks the compiled suite for its checks, running none of them.
func (a *app) checks(ctx context.Context) (course.Suite, error) {
	a.Progress("compiling the suite")
	tools, err := verdict.BuildTools(ctx, a.Root, a.State)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lab-lint-")
	if err != nil {
		return nil, fmt.Errorf("list the checks: %w", err)
	}
	defer os.RemoveAll(dir)
	report, err := tools.DryRun(ctx, suite.Config{Artifacts: dir})
	if err != nil {
		return nil, err
	}
	checks := course.Suite{}
	for _, spec := range report.SpecReports {
		lab, id := 0, ""
		for _, label := range spec.Labels() { // of env.Lab and env.Check
			if number, ok := strings.CutPrefix(label, "lab:"); ok {
				lab, _ = strconv.Atoi(number)
			} else if name, ok := strings.CutPrefix(label, suite.CheckLabel); ok {
				id = name
			}
		}
		if id != "" {
			checks[lab] = append(checks[lab], id)
		}
	}
	return checks, nil
}

// verify compares what is written down with what it is made from.
func (a *app) verify(ctx context.Context, fix bool) error {
	c, err := a.Course()
	if err == nil && fix {
		var changed []string
		changed, err = (&course.Verifier{Course: c, Log: a.Progress}).Fix(ctx)
		for _, file := range changed {
			fmt.Fprintln(a.Out, "rewrote", file)
		}
		if err == nil {
			c, err = a.Course()
		}
	}
	if err != nil {
		return err
	}
	problems, err := (&course.Verifier{Course: c, Log: a.Progress}).Verify(ctx)
	if err != nil {
		return err
	}
	found, err := a.lint(ctx)
	return a.report("Generated files are up to date.", append(problems, found...), err)
}
