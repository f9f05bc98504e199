package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// hinted is how many layers of hints for one failure have been shown.
type hinted struct {
	Check, Cause string
	Layers       int
}

// hint shows the next layer of the hints for what failed last. It never judges: what was changed since then
// does not matter before the next check.
func (a *app) hint(_ context.Context, args []string) error {
	c, n, err := a.lab(args...)
	if err != nil {
		return err
	}
	result, err := a.last(n)
	if err != nil {
		return err
	}
	failed := result.First()
	switch {
	case result.Verdict == verdict.Environment:
		a.Say("The last check of lab %d says nothing about your code: %s\nWhat fixes it: %s", n, result.Environment.Finding, result.Environment.Fix)
		return nil
	case result.Build != nil:
		verdict.PrintHints(a.Out, result, c.Hint, 0)
		return nil
	case failed == nil:
		a.Say("Nothing failed when lab %d was checked last.", n)
		return nil
	}
	path := filepath.Join(a.State, "hints", workspace.Key(a.workspace), fmt.Sprintf("lab-%d.json", n))
	next := hinted{Check: failed.ID, Cause: failed.Cause, Layers: 1} // the report itself showed the first
	var last hinted
	if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &last) == nil && last.Check == next.Check && last.Cause == next.Cause {
		next = last
	}
	if verdict.PrintHints(a.Out, result, c.Hint, next.Layers+1) {
		next.Layers++
	}
	data, err := json.Marshal(next)
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

// last is the result of the last check of a lab in the workspace.
func (a *app) last(n int) (*verdict.Result, error) {
	result, err := verdict.Read(a.State, a.workspace, n)
	if errors.Is(err, os.ErrNotExist) {
		return nil, exit.Usage("lab %d was not checked yet: run make lab-%d%s first", n, n, a.workspaceArg())
	}
	return result, err
}
