package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/handout"
	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/internal/cli"
)

// imagesPath is where the room's server has the node image, for everybody in the room.
const imagesPath = "/images/"

func newImageCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "image",
		Short: "Pack the node image for learners who have a container engine (make classroom-image)",
		Long: `image packs the node image that lab node-image built, so that classroom serve can give it to the room and the
handouts name it: learners with a container engine of their own load it, and need not pull one from the internet. It takes
about a minute, once for each image. Learners without an engine do not need it.`,
		Args: cli.NoArguments("image"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			packed, err := nodeimage.Pack(cmd.Context(), a.Engine(), a.Cache, a.Progress)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s, %s\nSHA-256 %s\n", packed.Path, modules.Megabytes(packed.Size), packed.SHA256)
			fmt.Fprintln(a.Out, "`make classroom-serve` serves it from its next start on, and `make classroom-handouts` names it in a room that lends nothing.")
			return nil
		},
	}
}

// serveImage adds the packed node image to what is served, if there is one.
func (a *app) serveImage(public map[string]http.Handler) (nodeimage.Archive, bool) {
	image, ok := nodeimage.Packed(a.Cache)
	if ok {
		public[imagesPath+image.Name()] = download(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, image.Path)
		}))
	}
	return image, ok
}

// imageDownload is what a handout says of an image.
func imageDownload(server string, image nodeimage.Archive) *handout.Download {
	return &handout.Download{URL: server + imagesPath + image.Name(), SHA256: image.SHA256, Size: image.Size}
}

// printForEngines prints what learners with a container engine need.
func (a *app) printForEngines(at site, image nodeimage.Archive) {
	fmt.Fprintf(a.Out, "Who has a container engine gets the node image, %s:\n", modules.Megabytes(image.Size))
	for _, line := range handout.ImageCommands(at.key, imageDownload(at.url(), image)) {
		fmt.Fprintln(a.Out, "  "+line)
	}
}

// roomImage is what handouts say of the node image, nil when none is packed.
func (a *app) roomImage(server string) *handout.Download {
	image, ok := nodeimage.Packed(a.Cache)
	if !ok {
		return nil
	}
	return imageDownload(server, image)
}
