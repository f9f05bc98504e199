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
			return a.hint(c, n)
		},
	}
}

// given is how far the hints for one failure have been told.
type given struct {
	Workspace, Check, Cause string
	Layers                  int
}

// hint tells the next layer of the hints for what failed last. It never judges: what was changed since then
// is for the next check to see.
func (a *app) hint(c *course.Course, n int) error {
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
		next := given{result.Workspace, failed.ID, failed.Cause, 1} // the verdict itself gave the first
		next.Layers = max(next.Layers, told(path, next)) + 1
		if !verdict.PrintHints(a.Out, result, c.Hint, next.Layers) {
			next.Layers-- // there is no next one
		}
		return keep(path, next)
	}
	return nil
}

// told is how many hints for this failure were given already.
func told(path string, failure given) int {
	var g given
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &g) != nil {
		return 0
	}
	failure.Layers = g.Layers
	if g != failure {
		return 0
	}
	return g.Layers
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
