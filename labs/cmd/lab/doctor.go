package main

import (
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/doctor"
)

// newDoctorCommand is `lab doctor`.
func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what on this machine would stop a lab, and the command that fixes it",
		Long: `Look at the container engine, the node image, inotify, disks, memory and Go, and say in one line each what was
found and which command fixes it. Nothing is changed.

The exit code is 3 when a lab could not run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := doctor.Run(cmd.Context(), a.DoctorOptions())
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			a.ShowFindings(findings)
			return doctor.Problem(findings)
		},
	}
}
