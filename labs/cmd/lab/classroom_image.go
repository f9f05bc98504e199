package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/handout"
	"github.com/example/operator-lab/labs/internal/modules"
	"github.com/example/operator-lab/labs/internal/roomimage"
)

// imagesPath is where the room's server has the node image, for everybody in the room.
const imagesPath = "/images"

func newClassroomImageCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "image",
		Short: "Pack the node image for learners who have a container engine (make classroom-image)",
		Long: `image packs the node image that lab node-image built, so that lab classroom serve can give it to the room and the
handouts name it: learners with a container engine of their own load it, and need not pull one from the internet. It takes
about a minute, once for each image. Learners without an engine do not need it.`,
		Args: noArguments("classroom image"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			packed, err := nodeimage.Pack(cmd.Context(), a.engine(), a.cache, a.progress)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s, %s\nSHA-256 %s\n", packed.Path, modules.Megabytes(packed.Size), packed.SHA256)
			fmt.Fprintln(a.out, "`make classroom-serve` serves it from its next start on, and `make classroom-handouts` names it in a room that lends nothing.")
			return nil
		},
	}
}

// serveImage adds the packed node image to what is served, if there is one.
func (a *app) serveImage(public map[string]http.Handler) (nodeimage.Archive, bool) {
	image, ok := nodeimage.Packed(a.cache)
	if ok {
		public[imagesPath+"/"] = http.StripPrefix(imagesPath, roomimage.NewServer(image))
	}
	return image, ok
}

// imageURL is where a server has an image.
func imageURL(server string, image nodeimage.Archive) string {
	return server + imagesPath + "/" + image.Name()
}

// tellEngines prints what learners with a container engine need.
func (a *app) tellEngines(addr net.Addr, image nodeimage.Archive) {
	fmt.Fprintf(a.out, "Who has a container engine gets the node image, %s:\n  make node-image FROM=%s SHA256=%s\n",
		modules.Megabytes(image.Size), imageURL("http://"+addr.String(), image), image.SHA256)
}

// roomImage is what handouts say of the node image, nil when none is packed.
func (a *app) roomImage(server string) *handout.Image {
	image, ok := nodeimage.Packed(a.cache)
	if !ok {
		return nil
	}
	return &handout.Image{URL: imageURL(server, image), SHA256: image.SHA256, Size: image.Size}
}

// roomsImage is the node image of the room that a learner is in.
type roomsImage struct {
	from   string // --from
	digest string // --sha256
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// check wants what a handout says, as it says it.
func (r roomsImage) check() error {
	u, err := url.Parse(r.from)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return exit.Usage("FROM=%s is no address of a node image: your handout has the line", r.from)
	}
	if err := nodeimage.CheckArchiveName(path.Base(u.Path)); err != nil {
		return exit.Usage("FROM: %v; leave it out: make lab-1 CLUSTER=embedded needs no node image", err)
	}
	if !digestForm.MatchString(r.digest) {
		return exit.Usage("SHA256=%s is no digest of 64 hexadecimal digits: your handout has the line", r.digest)
	}
	return nil
}

// takeNodeImage gives the engine of this machine the node image of the room.
func (a *app) takeNodeImage(ctx context.Context, room roomsImage) error {
	if err := room.check(); err != nil {
		return err
	}
	if err := clusters.PingEngine(ctx, a.engine()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &clusters.Problem{
			What: "no container engine answers here, and the image is for nothing else: do without", Mend: "make lab-1 CLUSTER=embedded",
		}
	}
	name := path.Base(room.from)
	if loaded, err := nodeimage.IsLoaded(ctx, a.engine(), name); err != nil || loaded {
		if loaded {
			fmt.Fprintln(a.out, "The room's node image is here already.")
		}
		return err
	}
	file := filepath.Join(a.cache, "images", "fetched", name)
	a.progress("fetching the node image from " + room.from)
	err := roomimage.Fetch(ctx, room.from, room.digest, file, a.progress)
	switch {
	case errors.Is(err, roomimage.ErrDigest):
		return exit.Environment(fmt.Errorf("%w: the line in your handout is damaged, or the room has another image now; ask for it", err))
	case err != nil:
		return exit.Environment(fmt.Errorf("%w; what has arrived stays: run it again", err))
	}
	return a.loadNodeImage(ctx, file)
}

// loadNodeImage loads what was fetched, after which the file is of no use.
func (a *app) loadNodeImage(ctx context.Context, file string) error {
	a.progress("giving it to the container engine, which takes a minute")
	image, err := nodeimage.Load(ctx, a.engine(), file)
	if err != nil {
		return exit.Environment(err)
	}
	fmt.Fprintln(a.out, image.Ref)
	if err := os.Remove(file); err != nil {
		a.progress(err.Error())
	}
	return nil
}
