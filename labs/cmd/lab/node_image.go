package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/nodeimage"
)

// newNodeImageCommand is `lab node-image`.
func newNodeImageCommand(a *app) *cobra.Command {
	var withoutOperand bool
	var file imageFile
	cmd := &cobra.Command{
		Use:   "node-image",
		Short: "Build the image of the clusters' nodes from source",
		Long: `Build the image of the clusters' nodes from Debian packages and Go modules, without an image registry.

The first build takes about ten minutes on two cores and needs root for debootstrap. When nothing changed, the
image that is there stays.

With --file it is not built but loaded from a file, which the server of the room that you are in has; your handout has
the lines.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != (imageFile{}) {
				return a.loadNodeImage(cmd.Context(), file)
			}
			image, err := nodeimage.Build(cmd.Context(), nodeimage.Options{
				Engine: a.engine(), CacheDir: a.cache, Root: a.root, WithOperand: !withoutOperand,
				Log: func(line string) { fmt.Fprintln(a.err, line) },
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, image.Ref)
			return nil
		},
	}
	cmd.Flags().BoolVar(&withoutOperand, "without-operand", false,
		"leave out memcached's image, as in kind's own node image; it is then loaded into each cluster")
	cmd.Flags().StringVar(&file.path, "file", "", "the room's image, as downloaded with the line in your handout")
	cmd.Flags().StringVar(&file.digest, "sha256", "", "SHA-256 digest of that file, as in your handout")
	return cmd
}
