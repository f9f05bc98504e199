package main

import (
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/exit"
)

// classroomDir is where a room is kept, below .lab.
const classroomDir = "classroom"

func newClassroomCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "classroom",
		Short: "Run a room of learners",
		RunE: func(*cobra.Command, []string) error {
			return exit.Usage("use lab classroom modules|serve; see lab classroom --help")
		},
	}
	cmd.AddCommand(newClassroomModulesCommand(a), newClassroomServeCommand(a))
	return cmd
}
