// Command classroom is an instructor's: a board that shows how learners are doing, a cluster for each of them, what
// they need on a weak network, and grades. `classroom --help` lists what it does.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func main() {
	os.Exit(cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{*shared}) }))
}

// app is what the commands share.
type app struct{ cli.App }

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "classroom",
		Short: "A board, a cluster for each learner, and grades",
		Long: `classroom shows on a board who is stuck, makes a cluster for each learner, offers what is needed on a weak network, and grades
what was handed in. docs/classroom.md tells how.

Exit codes: 0 done, 1 a learner's work fails (grade), 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see classroom --help") },
	}
	a.Flags(root)
	root.AddCommand(newServeCommand(a), newUpCommand(a), newModulesCommand(a), newGradeCommand(a), newJudgeImageCommand(a))
	return root
}
