// Command labdev is for those who work on the course: it tests, lints and verifies it. `labdev --help` lists what it does;
// the make targets under "Work on the project" call it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/memcached"
)

func main() {
	os.Exit(cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{App: *shared}) }))
}

// app is what the commands share.
type app struct{ cli.App }

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "labdev",
		Short: "Test, lint and verify the course",
		Long: `labdev is for those who work on the course.

Exit codes: 0 done, 1 something does not hold, 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see labdev --help") },
	}
	a.Flags(root)
	root.AddCommand(newTestCommand(a), newMutantsCommand(a),
		cli.Command("verify", "All that lint finds, stages, generated files (make verify does more)", cobra.NoArgs,
			func(ctx context.Context, _ []string) error { return a.verify(ctx, true) }),
		cli.Command("generate", "Make the generated files anew", cobra.NoArgs, a.generate),
		cli.Command("lint", "What is wrong with the course and can be seen without running it", cobra.NoArgs,
			func(ctx context.Context, _ []string) error { return a.verify(ctx, false) }),
		cli.Command("node-image", `Build the image of the clusters' nodes from Debian packages and Go modules, without an image registry

The first build takes about ten minutes on two cores and needs root for debootstrap. When nothing changed, the image that is there stays.`,
			cobra.NoArgs, a.buildNodeImage))
	return root
}

func (a *app) buildNodeImage(ctx context.Context, _ []string) error {
	ref, err := nodeimage.Build(ctx, memcached.NodeImage(a.Engine(), a.Cache, a.Progress))
	if err == nil {
		fmt.Fprintln(a.Out, ref)
	}
	return err
}
