// Command classroom is an instructor's: clusters for the learners of a room, a server for all of them, a board that shows
// how they are doing, and grades. `classroom --help` lists what it does.
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
		Short: "A cluster for every learner in a room, a server for all of them, and grades",
		Long: `classroom makes a cluster for every learner in a room, serves the room so that the labs need no internet, shows on a
board who is stuck, and grades what was handed in. docs/classroom.md tells how.

Exit codes: 0 done, 1 a learner's work fails (grade), 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see classroom --help") },
	}
	a.Flags(root)
	root.AddCommand(newRoomCommands(newRoom(a))...)
	root.AddCommand(newDoctorCommand(newRoom(a)), newModulesCommand(a), newImageCommand(a), newServeCommand(a), newHandoutsCommand(a),
		newBoardCommand(a), newGradeCommand(a), newJudgeImageCommand(a))
	return root
}
