package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func newHintCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "hint N",
		Short: "The next hint for what failed last in step N (make hint-N)",
		Args:  one("hint N, such as hint 4"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.course()
			if err != nil {
				return err
			}
			n, err := labNumber(c, args[0])
			if err != nil {
				return err
			}
			return a.hint(c, n)
		},
	}
}

// given is how far the hints for one failure have been told.
type given struct {
	Check, Cause string
	Layers       int
}

func (a *app) hint(c *course.Course, n int) error {
	result, err := verdict.Read(a.state, n)
	if errors.Is(err, os.ErrNotExist) {
		return exit.Usage("lab %d was not checked yet: run make lab-%d first", n, n)
	}
	if err != nil {
		return err
	}
	if result.Build != nil {
		fmt.Fprintf(a.out, "Your code does not compile. The first line is the one to read:\n%s\n", result.Build.Output)
		return nil
	}
	failed := result.First()
	if failed == nil {
		fmt.Fprintf(a.out, "Nothing failed when lab %d was checked last.\n", n)
		return nil
	}
	path := filepath.Join(a.state, "hints", fmt.Sprintf("lab-%d.json", n))
	layer := told(path, failed)
	hints := verdict.CourseHints{Course: c}
	fmt.Fprintf(a.out, "%s\n\n", failed.Title)
	for i := 0; i <= layer; i++ {
		if text := hints.Hint(failed.ID, failed.Cause, i); text != "" {
			fmt.Fprintf(a.out, "%d. %s\n", i+1, text)
		}
	}
	if hints.Hint(failed.ID, failed.Cause, layer+1) == "" {
		fmt.Fprintf(a.out, "\nThat was all. `make solve-%d` writes the solution into your workspace, and saves yours first.\n", n)
		return nil
	}
	fmt.Fprintf(a.out, "\n`make hint-%d` again says more.\n", n)
	return keep(path, given{failed.ID, failed.Cause, layer + 1})
}

// told is how many hints for this failure were given already. The verdict itself gave the first.
func told(path string, failed *verdict.Check) int {
	var g given
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &g) != nil || g.Check != failed.ID || g.Cause != failed.Cause {
		return 1
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
