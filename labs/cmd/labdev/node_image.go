package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/memcached"
)

func newNodeImageCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "node-image",
		Short: "Build the image of the clusters' nodes from source",
		Long: `Build the image of the clusters' nodes from Debian packages and Go modules, without an image registry.

The first build takes about ten minutes on two cores and needs root for debootstrap. When nothing changed, the
image that is there stays.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, err := nodeimage.Build(cmd.Context(), memcached.NodeImage(a.Engine(), a.Cache, a.Progress))
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, ref)
			return nil
		},
	}
}
