package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/setup"
)

// newSetupCommand is `lab setup`.
func newSetupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Set up what this machine lacks: container engine, kernel settings, node image",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.setUpChosen(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(a.out, "This machine has what lab clusters need.")
			return nil
		},
	}
}

// setUpChosen sets up what clusters of the chosen kind need: kind, unless embedded is asked for.
func (a *app) setUpChosen(ctx context.Context) error {
	if a.cluster != onEmbedded {
		return a.setUpAll(ctx)
	}
	_, provider, err := a.ownedEmbedded()
	if err != nil {
		return err
	}
	return provider.Prepare(ctx)
}

// setUp does what this machine lacks for n clusters at the same time, with consent: a yes at the terminal, --yes, or a CI
// system that runs us.
func (a *app) setUp(ctx context.Context, n int) error { return a.setUpMachine(ctx, n, false) }

// setUpAll also does what only several clusters side by side, or the authors of the node image, can miss.
func (a *app) setUpAll(ctx context.Context) error { return a.setUpMachine(ctx, 1, true) }

func (a *app) setUpMachine(ctx context.Context, n int, thorough bool) error {
	return setup.Run(ctx, setup.Options{
		Root: a.root, CacheDir: a.cache, Engine: a.engine(), NodeImage: a.nodeImage, Thorough: thorough,
		Clusters: n, Yes: a.yes, In: a.in, Out: a.err,
	})
}
