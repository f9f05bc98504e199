package main

import (
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newResetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reset N",
		Short: "Save your work, then bring the workspace to the starter of lab N",
		Args:  cli.One("reset N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bring(cmd.Context(), args[0], "the starter of lab %d", workspace.Reset)
		},
	}
}
