package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func newModulesCommand(a *app) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "modules",
		Short: "Download the Go modules that a room needs (make classroom-modules)",
		Long: `modules downloads into .lab/modules what learners' machines download for the labs: the modules of the workspace and
its tools, of the lab and its suite, and of the embedded control plane (not with --cluster kind), for Linux, macOS and
Windows. classroom serve then serves that folder to the room.

Run it where the internet is good. What is there is not downloaded again, and an interrupt loses nothing that has
arrived. --check downloads nothing: it says what is missing, or proves that nothing is.`,
		Args: cli.NoArguments("modules"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			needs, done, err := a.moduleNeeds()
			if err != nil {
				return err
			}
			defer done()
			if check {
				return a.checkModules(cmd.Context(), needs)
			}
			return a.fillModules(cmd.Context(), needs)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false,
		"say what is missing: a Go command with an empty cache and nothing but .lab/modules in reach tries it, with 2 GB of disk")
	return cmd
}

// roomModules are those that the room's server has.
func (a *app) roomModules() modules.Folder {
	return modules.Folder(filepath.Join(a.State, "modules"))
}

// moduleNeeds are what learners compile; done removes what was rendered for it.
func (a *app) moduleNeeds() (needs []modules.Need, done func(), err error) {
	c, err := a.Course()
	if err != nil {
		return nil, nil, err
	}
	scratch, err := os.MkdirTemp("", "lab-modules-")
	if err != nil {
		return nil, nil, exit.Environment(fmt.Errorf("look what the labs need: %w", err))
	}
	done = func() { _ = os.RemoveAll(scratch) }
	needs, err = modules.Needs(c, scratch, a.Cluster != cli.Kind)
	if err != nil {
		done()
		return nil, nil, exit.Usage("%v", err)
	}
	return needs, done, nil
}

func (a *app) fillModules(ctx context.Context, needs []modules.Need) error {
	unlock, err := a.Lock("classroom-modules", "the room's modules")
	if err != nil {
		return err
	}
	defer unlock()
	stock, err := a.roomModules().Fill(ctx, needs, a.Progress)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return exit.Environment(fmt.Errorf(
			"%w; what has arrived stays: run classroom modules again when the internet is in reach", err))
	}
	fmt.Fprintf(a.Out, "%s, in %s\n", stock, a.roomModules())
	fmt.Fprintln(a.Out, "`make classroom-serve ADDRESS=ip` serves them to the room.")
	return nil
}

func (a *app) checkModules(ctx context.Context, needs []modules.Need) error {
	missing, err := a.roomModules().Missing(needs)
	if err != nil {
		return exit.Usage("%v", err)
	}
	for _, m := range missing {
		fmt.Fprintln(a.Out, m)
	}
	if len(missing) > 0 {
		return exit.Environment(fmt.Errorf("%s that the labs need, not in %s: make classroom-modules downloads what is missing",
			cli.Count(len(missing), "module"), a.roomModules()))
	}
	if err := modules.Check(ctx, a.roomModules().URL(), os.TempDir(), needs, a.Progress); err != nil {
		return exit.Environment(err)
	}
	fmt.Fprintf(a.Out, "A machine with an empty module cache needs nothing but %s.\n", a.roomModules())
	return nil
}
