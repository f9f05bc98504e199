package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newSetupCommand is `lab setup`.
func newSetupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Set up what this machine lacks: container engine, kernel settings, node image",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.SetUpChosen(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(a.Out, "This machine has what lab clusters need.")
			return nil
		},
	}
}
