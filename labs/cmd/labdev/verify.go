package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// verify lists what is wrong with the course. It compares manifests, lessons, operator/, wrong answers and the compiled suite with each
// other. With stages, it also compiles every stage, and compares generated files with what makes them.
func (a *app) verify(ctx context.Context, stages bool) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	checks, err := a.checks(ctx)
	if err != nil {
		return err
	}
	problems, err := c.Lint(checks)
	if err != nil {
		return err
	}
	found, err := mutants.Lint(ctx, c)
	problems = append(problems, found...)
	if err == nil && stages {
		found, err = (&course.Verifier{Course: c, Log: a.Progress}).Verify(ctx)
		problems = append(problems, found...)
	}
	for _, p := range problems {
		fmt.Fprintln(a.Out, p)
	}
	if err == nil && len(problems) > 0 {
		return exit.ErrFail
	}
	return err
}

// checks lists the checks of the compiled suite, and runs none of them.
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
		lab := 0
		for _, label := range spec.Labels() { // that of env.Lab comes before that of env.Check
			_, _ = fmt.Sscanf(label, suite.LabLabel+"%d", &lab)
			if id, ok := strings.CutPrefix(label, suite.CheckLabel); ok {
				checks[lab] = append(checks[lab], id)
			}
		}
	}
	return checks, nil
}

// generate makes generated files anew.
func (a *app) generate(ctx context.Context, _ []string) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	changed, err := (&course.Verifier{Course: c, Log: a.Progress}).Fix(ctx)
	for _, file := range changed {
		fmt.Fprintln(a.Out, "rewrote", file)
	}
	return err
}
