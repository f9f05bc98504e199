package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/nodeimage"
)

// newNodeImageCommand is `lab node-image`.
func newNodeImageCommand(a *app) *cobra.Command {
	var withoutOperand bool
	cmd := &cobra.Command{
		Use:   "node-image",
		Short: "Build the image of the clusters' nodes from source",
		Long: `Build the image of the clusters' nodes from Debian packages and Go modules, without an image registry.

The first build takes about ten minutes on two cores and needs root for debootstrap. When nothing changed, the
image that is there stays.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			image, err := nodeimage.Build(cmd.Context(), nodeimage.Options{
				Engine: a.Engine(), CacheDir: a.Cache, Root: a.Root, WithOperand: !withoutOperand,
				Log: a.Progress,
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, image.Ref)
			return nil
		},
	}
	cmd.Flags().BoolVar(&withoutOperand, "without-operand", false,
		"leave out memcached's image, as in kind's own node image; it is then loaded into each cluster")
	return cmd
}
