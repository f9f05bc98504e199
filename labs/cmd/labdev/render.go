package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func newRenderCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "render STAGE DIR",
		Short: "Write a stage of operator/ into a new folder (0 is the starter of lab 1)",
		Args:  cli.Arguments(2, 2, "render STAGE DIR"),
		RunE:  func(_ *cobra.Command, args []string) error { return a.render(args[0], args[1]) },
	}
}

func (a *app) render(stage, dir string) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(stage)
	if err != nil || n < 0 || n > len(c.Labs) {
		return exit.Usage("%q is not a stage: use 0 to %d", stage, len(c.Labs))
	}
	if _, err := os.Lstat(dir); err == nil {
		return exit.Usage("%s exists: name a folder that does not", dir)
	}
	tree, err := c.Render(n)
	if err != nil {
		return err
	}
	if err := tree.WriteTo(dir); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Wrote stage %d to %s.\n", n, dir)
	return nil
}
