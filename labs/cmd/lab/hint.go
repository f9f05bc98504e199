package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newHintCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "hint N",
		Short: "The next hint for what failed last in step N (make hint-N)",
		Args:  cli.One("hint N, such as hint 4"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, n, err := a.lab(args[0])
			if err != nil {
				return err
			}
			return a.hint(c, n, a.AtTerminal())
		},
	}
}

// given is how far the hints for one failure have been told.
type given struct {
	Workspace, Check, Cause string
	Layers                  int
	// Code says that somebody wanted to see ours.
	Code bool `json:",omitempty"`
}

// hint tells the next layer of the hints for what failed last. It never judges: what was changed since then
// is for the next check to see. ask says that somebody can be asked.
func (a *app) hint(c *course.Course, n int, ask bool) error {
	result, err := verdict.Read(a.State, n)
	if err == nil && result.Workspace != a.workspace {
		err = os.ErrNotExist
	}
	if errors.Is(err, os.ErrNotExist) {
		return exit.Usage("lab %d was not checked yet: run make lab-%d first", n, n)
	}
	if err != nil {
		return err
	}
	failed := result.First()
	switch {
	case result.Verdict == verdict.Environment:
		fmt.Fprintf(a.Out, "The last check of lab %d says nothing about your code: %s\nWhat fixes it: %s\n", n, result.Environment.Finding, result.Environment.Fix)
	case result.Build != nil:
		verdict.PrintHints(a.Out, result, c.Hint, 0)
	case failed == nil:
		fmt.Fprintf(a.Out, "Nothing failed when lab %d was checked last.\n", n)
	default:
		path := filepath.Join(a.State, "hints", fmt.Sprintf("lab-%d.json", n))
		next := told(path, given{Workspace: result.Workspace, Check: failed.ID, Cause: failed.Cause, Layers: 1}) // the verdict itself gave the first
		next.Layers++
		more := verdict.PrintHints(a.Out, result, c.Hint, next.Layers)
		if !more {
			next.Layers-- // there is no next one
			if err := a.showCode(c, n, ask, &next); err != nil {
				return err
			}
		}
		return keep(path, next)
	}
	return nil
}

// showCode shows, after the last hint, the one region of our code that it is about, to somebody who wants that.
func (a *app) showCode(c *course.Course, n int, ask bool, g *given) error {
	region := c.HintRegion(g.Check, g.Cause)
	switch {
	case region == "":
		return nil
	case g.Code || a.Yes:
	case !ask:
		fmt.Fprintf(a.Out, "`make hint-%d YES=1` shows how we have written this one part.\n", n)
		return nil
	case !a.Ask("Show how we have written this one part?"):
		return nil
	}
	g.Code = true
	code, err := c.Snippet(region)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nThis one part in our code:\n\n%s", code)
	return nil
}

// told is how far the hints for this failure were told already, or the failure as it is.
func told(path string, failure given) given {
	var g given
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &g) != nil || g.Workspace != failure.Workspace || g.Check != failure.Check || g.Cause != failure.Cause {
		return failure
	}
	g.Layers = max(g.Layers, failure.Layers)
	return g
}

func keep(path string, g given) error {
	data, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("remember hint: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("remember hint: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("remember hint: %w", err)
	}
	return nil
}
