package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/classroom/handout"
	"github.com/example/operator-lab/labs/classroom/modules"
)

// imagesPath is where the room's server has the node image, for everybody in the room.
const imagesPath = "/images/"

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
		public[imagesPath+image.Name()] = download(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, image.Path)
		}))
	}
	return image, ok
}

// handoutImage is what a handout says of an image.
func handoutImage(server string, image nodeimage.Archive) *handout.Image {
	return &handout.Image{URL: server + imagesPath + image.Name(), SHA256: image.SHA256, Size: image.Size}
}

// tellEngines prints what learners with a container engine need.
func (a *app) tellEngines(addr net.Addr, image nodeimage.Archive) {
	fmt.Fprintf(a.out, "Who has a container engine gets the node image, %s:\n", modules.Megabytes(image.Size))
	for _, line := range handoutImage("http://"+addr.String(), image).Commands() {
		fmt.Fprintln(a.out, "  "+line)
	}
}

// roomImage is what handouts say of the node image, nil when none is packed.
func (a *app) roomImage(server string) *handout.Image {
	image, ok := nodeimage.Packed(a.cache)
	if !ok {
		return nil
	}
	return handoutImage(server, image)
}

// imageFile is a node image that a learner has downloaded from the room's server.
type imageFile struct {
	path   string // --file
	digest string // --sha256
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// check wants what a handout says, as it says it.
func (f imageFile) check() error {
	if err := nodeimage.CheckArchiveName(filepath.Base(f.path)); err != nil {
		return exit.Usage("FILE: %v; leave it out: make lab-1 CLUSTER=embedded needs no node image", err)
	}
	if !digestForm.MatchString(f.digest) {
		return exit.Usage("SHA256=%s is no digest of 64 hexadecimal digits: your handout has the line", f.digest)
	}
	return nil
}

// verify compares the file with its digest. The handout vouches for that, and not the way from the room's server.
func (f imageFile) verify() error {
	file, err := os.Open(f.path)
	if err != nil {
		return exit.Usage("FILE: %v; your handout has the line that downloads it", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return exit.Environment(err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != f.digest {
		return exit.Environment(fmt.Errorf("%s is not what SHA256 says: run the handout's curl command again, which goes on where it stopped; "+
			"if that changes nothing, delete the file and ask for the line", f.path))
	}
	return nil
}

// loadNodeImage gives the engine of this machine a node image from a file.
func (a *app) loadNodeImage(ctx context.Context, file imageFile) error {
	if err := file.check(); err != nil {
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
	if err := file.verify(); err != nil {
		return err
	}
	a.progress("giving it to the container engine, which takes a minute")
	image, err := nodeimage.Load(ctx, a.engine(), file.path)
	if err != nil {
		return exit.Environment(err)
	}
	fmt.Fprintln(a.out, image.Ref)
	return nil
}
