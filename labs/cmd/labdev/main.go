// Command labdev is for those who work on the course: it tests, lints, verifies and renders it. `labdev --help` lists what it does;
// the make targets under "Work on the project" call it.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func main() {
	os.Exit(cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{App: *shared}) }))
}

// app is what the commands share.
type app struct{ cli.App }

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "labdev",
		Short: "Test, lint, verify and render the course",
		Long: `labdev is for those who work on the course.

Exit codes: 0 done, 1 something does not hold, 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see labdev --help") },
	}
	a.Flags(root)
	root.AddCommand(newTestCommand(a), newProofCommand(a), newMutantsCommand(a),
		newVerifyCommand(a), newLintCommand(a), newRenderCommand(a), newNodeImageCommand(a))
	return root
}
