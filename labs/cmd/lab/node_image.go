package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/nodeimage"
)

// newNodeImageCommand is `lab node-image`.
func newNodeImageCommand(a *app) *cobra.Command {
	var withoutOperand bool
	var room roomsImage
	cmd := &cobra.Command{
		Use:   "node-image",
		Short: "Build the image of the clusters' nodes from source",
		Long: `Build the image of the clusters' nodes from Debian packages and Go modules, without an image registry.

The first build takes about ten minutes on two cores and needs root for debootstrap. When nothing changed, the
image that is there stays.

With --from it is not built but taken from the server of the room that you are in; your handout has the line.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if room != (roomsImage{}) {
				return a.takeNodeImage(cmd.Context(), room)
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
	cmd.Flags().StringVar(&room.from, "from", "", "address of the image on the room's server, as in your handout")
	cmd.Flags().StringVar(&room.digest, "sha256", "", "SHA-256 digest of what is there, as in your handout")
	return cmd
}
