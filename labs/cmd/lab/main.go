// Command lab checks the steps of the Operator Lab. `lab --help` lists what it does; nearly every make target of the
// checkout calls it.
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func main() {
	os.Exit(cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{App: *shared}) }))
}

// app is what the commands of a learner share.
type app struct {
	cli.App
	workspace string // --workspace, absolute
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "Build a Kubernetes operator in steps, each judged on a fresh cluster",
		Long: `lab judges each step of the Memcached operator that you build in workspace/, on a fresh cluster: kind, or, without a
container engine, an embedded control plane.

Exit codes: 0 pass or done, 1 fail, 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see lab --help") },
	}
	a.Flags(root, cli.Hosted)
	resolve := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := resolve(cmd, args); err != nil {
			return err
		}
		a.useRoomsModules(cmd.Context())
		if a.workspace == "" {
			return exit.Usage("WORKSPACE is empty: name a folder, or leave it out")
		}
		a.workspace = workspace.Real(a.workspace)
		return nil
	}
	root.PersistentFlags().StringVar(&a.workspace, "workspace", filepath.Join(a.Root, "workspace"), "folder that you work in")
	root.AddCommand(
		newDemoCommand(a), newCheckCommand(a), newWatchCommand(a), newHintCommand(a), newTraceCommand(a), newDiffCommand(a), newProgressCommand(a),
		newSolveCommand(a), newResetCommand(a), newUndoCommand(a),
		newJoinCommand(a), newUpCommand(a), newDownCommand(a), newShellCommand(a), newRegistryCommand(a), newStatusCommand(a),
		newDoctorCommand(a), newSetupCommand(a),
	)
	return root
}
