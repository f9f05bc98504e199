package main

import (
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"os"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func (a *app) progress(context.Context, []string) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return err
	}
	passed, last := verdict.PassedLabs(events), map[int]verdict.Verdict{}
	for _, e := range events {
		if e.Verdict != verdict.Environment {
			last[e.Lab] = e.Verdict
		}
	}
	var rows [][]string
	for _, lab := range append([]*course.Lab{{Title: "Who did that?"}}, c.Labs...) {
		mark, states := " ", []string(nil)
		if e, ok := passed[lab.Number]; ok {
			mark, states = "✓", append(states, "passed "+minute(e.Time))
			if len(e.NotChecked) > 0 {
				states = append(states, "without "+strings.Join(e.NotChecked, " and "))
			}
		}
		if last[lab.Number] == verdict.Fail {
			states = append(states, "last run failed")
		}
		rows = append(rows, []string{fmt.Sprintf("%s lab %d", mark, lab.Number), lab.Title, strings.Join(states, ", ")})
	}
	return plain.Table(a.Out, rows...)
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func (a *app) diff(lab ...string) error {
	c, n, err := a.lab(lab...)
	if err != nil {
		return err
	}
	if _, err := os.Stat(a.workspace); err != nil {
		return exit.Usage("there is no workspace %s yet: make lab-1 makes one", plain.Path(a.workspace))
	}
	events, err := verdict.History(a.State, a.workspace)
	if err != nil {
		return err
	}
	if _, passed := verdict.PassedLabs(events)[n]; !passed {
		return exit.Usage("this shows the solution, and lab %d has not passed in %s yet: run make lab-%d%s first", n, plain.Path(a.workspace), n, a.workspaceArg())
	}
	diff, err := c.Diff(a.workspace, n)
	switch broken, ok := errors.AsType[scanner.ErrorList](err); {
	case ok:
		return exit.Usage("this file is not Go: %v", broken)
	case err == nil && diff == "":
		a.Say("What you wrote is our solution of lab %d, but for comments.", n)
	case err == nil:
		a.Say("Yours (-) and our solution of lab %d (+). Both are right if the checks say so.\n\n", n)
		fmt.Fprint(a.Out, diff)
	}
	return err
}
