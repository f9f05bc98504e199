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
	"github.com/example/operator-lab/labs/internal/workspace"
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

// told is how far the hints for one failure have been told.
type told struct {
	Check, Cause string
	Layers       int
	// Code says that somebody wanted to see our code.
	Code bool `json:",omitempty"`
}

// hint tells the next layer of the hints for what failed last. It never judges: what was changed since then
// is for the next check to see. ask says that somebody can be asked.
func (a *app) hint(c *course.Course, n int, ask bool) error {
	result, err := verdict.Read(a.State, a.workspace, n)
	if errors.Is(err, os.ErrNotExist) {
		return exit.Usage("lab %d was not checked yet: run make lab-%d%s first", n, n, a.workspaceArg())
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
		path := filepath.Join(a.State, "hints", workspace.Key(a.workspace), fmt.Sprintf("lab-%d.json", n))
		next := readTold(path, failed)
		next.Layers++
		if !verdict.PrintHints(a.Out, result, c.Hint, next.Layers) {
			next.Layers-- // there is no next one
			if err := a.showCode(c, n, ask, &next); err != nil {
				return err
			}
		}
		return next.write(path)
	}
	return nil
}

// showCode shows, after the last hint, the one region of our code that it is about, to somebody who wants that.
func (a *app) showCode(c *course.Course, n int, ask bool, t *told) error {
	region := c.HintRegion(t.Check, t.Cause)
	switch {
	case region == "":
		return nil
	case t.Code || a.Yes:
	case !ask:
		fmt.Fprintf(a.Out, "`make hint-%d YES=1` shows how we have written this one part.\n", n)
		return nil
	case !a.Ask("Show how we have written this one part?"):
		return nil
	}
	t.Code = true
	code, err := c.Snippet(region)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nThis one part in our code:\n\n%s", code)
	return nil
}

// readTold is how far the hints for this failure were told. The verdict itself told the first.
func readTold(path string, failed *verdict.Check) told {
	var t told
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &t) != nil || t.Check != failed.ID || t.Cause != failed.Cause {
		t = told{Check: failed.ID, Cause: failed.Cause}
	}
	t.Layers = max(t.Layers, 1)
	return t
}

func (t told) write(path string) error {
	data, err := json.Marshal(t)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("remember the hint: %w", err)
	}
	return nil
}
