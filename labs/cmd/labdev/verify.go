package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/cka"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
	"github.com/example/operator-lab/labs/internal/picture"
	"github.com/example/operator-lab/labs/internal/practice"
)

// verify lists what is wrong with the course. It compares manifests, lessons, checks, operator/ and wrong answers with each other. With
// stages, it also compiles every stage, and compares generated files and pictures with what makes them.
func (a *app) verify(ctx context.Context, stages bool) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	problems, err := c.Lint()
	if err != nil {
		return err
	}
	p, err := practice.Load(a.Root, a.State, cka.Programs())
	if err != nil {
		return exit.Usage("%v", err)
	}
	problems = append(problems, mutants.LintTasks(ctx, a.Root, p)...)
	found, err := mutants.Lint(ctx, c)
	problems = append(problems, found...)
	if err == nil && stages {
		found, err = (&course.Verifier{Course: c, Log: a.Progress}).Verify(ctx)
		problems = append(problems, found...)
		_, stale, staleErr := picture.Stale(c)
		for _, name := range stale {
			problems = append(problems, course.Problem{File: picture.Dir + "/" + name, Text: "is not what its text makes: make generate"})
		}
		err = errors.Join(err, staleErr)
	}
	for _, p := range problems {
		fmt.Fprintln(a.Out, p)
	}
	if err == nil && len(problems) > 0 {
		return exit.ErrFail
	}
	return err
}

// generate makes generated files anew.
func (a *app) generate(ctx context.Context, _ []string) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	pictures, stale, err := picture.Stale(c)
	for _, name := range stale {
		fmt.Fprintln(a.Out, "rewrote", picture.Dir+"/"+name)
		err = errors.Join(err, os.RemoveAll(filepath.Join(a.Root, picture.Dir, name))) // it may have no source any more
	}
	if err = errors.Join(err, pictures.WriteTo(filepath.Join(a.Root, picture.Dir))); err != nil {
		return err
	}
	changed, err := (&course.Verifier{Course: c, Log: a.Progress}).Fix(ctx)
	for _, file := range changed {
		fmt.Fprintln(a.Out, "rewrote", file)
	}
	return err
}
