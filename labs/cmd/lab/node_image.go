package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/cli/exit"
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
	cmd.Flags().StringVar(&file.path, "file", "", "the room's image, as downloaded with the line in your handout")
	cmd.Flags().StringVar(&file.digest, "sha256", "", "SHA-256 digest of that file, as in your handout")
	return cmd
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
	if err := clusters.PingEngine(ctx, a.Engine()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &clusters.Problem{
			What: "no container engine answers here, and the image is for nothing else: do without", Fix: "make lab-1 CLUSTER=embedded",
		}
	}
	if err := file.verify(); err != nil {
		return err
	}
	a.Progress("giving it to the container engine, which takes a minute")
	image, err := nodeimage.Load(ctx, a.Engine(), file.path)
	if err != nil {
		return exit.Environment(err)
	}
	fmt.Fprintln(a.Out, image.Ref)
	return nil
}
