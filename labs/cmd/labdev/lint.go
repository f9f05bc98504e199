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
		Use:    "lint",
		Short:  "For authors: what is wrong with the course and can be seen without running it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			problems, err := a.lintCourse(cmd.Context())
			if err != nil {
				return err
			}
			return a.printProblems(problems, "The course is in order.")
		},
	}
}

// lintCourse compares manifests, lessons, operator/, wrong answers and the compiled suite with each other.
func (a *app) lintCourse(ctx context.Context) ([]course.Problem, error) {
	c, err := a.Course()
	if err != nil {
		return nil, err
	}
	suite, err := a.suite(ctx)
	if err != nil {
		return nil, err
	}
	problems, err := c.Lint(suite)
	if err != nil {
		return nil, err
	}
	wrong, err := mutants.Lint(ctx, c)
	return append(problems, wrong...), err
}

// printProblems lists problems for an author; any is a failure.
func (a *app) printProblems(problems []course.Problem, fine string) error {
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

// suite asks the compiled suite for its checks, running none of them.
func (a *app) suite(ctx context.Context) (course.Suite, error) {
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
	suite := course.Suite{}
	for _, spec := range report.SpecReports {
		if lab, id := checkLabels(spec.Labels()); id != "" {
			suite[lab] = append(suite[lab], id)
		}
	}
	return suite, nil
}

// checkLabels reads the labels that env.Lab and env.Check put on a spec.
func checkLabels(labels []string) (lab int, id string) {
	for _, label := range labels {
		if number, ok := strings.CutPrefix(label, "lab:"); ok {
			lab, _ = strconv.Atoi(number)
		}
		if name, ok := strings.CutPrefix(label, suite.CheckLabel); ok {
			id = name
		}
	}
	return lab, id
}
