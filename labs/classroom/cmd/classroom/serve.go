package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/checkout"
	"github.com/example/operator-lab/labs/classroom/handout"
	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// What the room's server serves beside the board, to everybody in the room.
const (
	modulesPath = "/modules"
	coursePath  = "/course.tar.gz"
)

func newServeCommand(a *app) *cobra.Command {
	ready := func(ctx context.Context, a *app, n int) (*clusters.Owned, nodeimage.Image, error) {
		return a.Ready(ctx, n)
	}
	return serveCommand(&board{app: a, prepare: ready})
}

func serveCommand(b *board) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the board, Go modules, the course, the node image and clusters to the room (make classroom-serve)",
		Long: `serve is the room's server, so that the labs need no internet: the board, as classroom board serves it; below
/modules the folder .lab/modules, as a GOPROXY; as /course.tar.gz the course at HEAD; and below /images the node image,
for learners with a container engine of their own. It prints what learners set. Everybody who reaches it can read these,
and the board only with a token.

It also lends the clusters that classroom up was told to lend, each for one verdict of a learner with a token, and
removes them when it ends.

classroom modules, run before, fills the folder, and classroom image packs the node image. --listen with a fixed
port keeps handouts valid.`,
		Args: cli.NoArguments("serve"),
		RunE: func(cmd *cobra.Command, _ []string) error { return b.serveRoom(cmd.Context()) },
	}
	b.roomFlags(cmd)
	b.listenFlags(cmd)
	b.expiresFlag(cmd)
	return cmd
}

func (b *board) serveRoom(ctx context.Context) (err error) {
	if err := b.check(); err != nil {
		return err
	}
	if _, err := bindAddress(b.listen, b.addr); err != nil {
		return err
	}
	course, err := checkout.Pack(ctx, b.Root)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return exit.Usage("%v; serve the room from a git checkout", err)
	}
	if course.Changed {
		b.Progress("this checkout has changes that are not committed; the room gets the course without them")
	}
	unlock, err := b.lockServer()
	if err != nil {
		return err
	}
	defer unlock()
	if err := b.warnOfMissing(); err != nil {
		return err
	}
	public := map[string]http.Handler{
		modulesPath + "/": download(http.StripPrefix(modulesPath, b.roomModules().Handler())),
		coursePath:        course,
	}
	image, packed := b.serveImage(public)
	lender, err := b.openLender(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lender.Close()) }()
	return b.serve(ctx, beside{
		public:  public,
		checked: modulesPath + "/",
		announce: func(at site) {
			b.printForLearners(at, course)
			if packed {
				b.printForEngines(at, image)
			}
			lender.print(b.Out)
		},
		learners: lender.routes(),
	})
}

// downloadLimit is how long somebody may take for one file. Half a gigabyte takes that long at 150 kB/s.
const downloadLimit = time.Hour

// download lets everybody read what h serves, for longer than a page may take.
func download(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "This is read only.", http.StatusMethodNotAllowed)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadLimit)) // tests have none
		h.ServeHTTP(w, r)
	})
}

// warnOfMissing says which of the modules that the labs need the room will not get.
func (b *board) warnOfMissing() error {
	needs, done, err := b.moduleNeeds()
	if err != nil {
		return err
	}
	defer done()
	missing, err := b.roomModules().Missing(needs)
	if err != nil {
		return exit.Usage("%v", err)
	}
	if len(missing) > 0 {
		b.Progress(fmt.Sprintf("not in %s: %s that the labs need, such as %s; make classroom-modules gets them",
			b.roomModules(), cli.Count(len(missing), "module"), missing[0]))
	}
	return nil
}

// printForLearners prints what a learner's machine needs, as lines for a shell.
func (b *board) printForLearners(at site, course checkout.Archive) {
	fmt.Fprintf(b.Out, "\nLearners get the course, %s at commit %.12s:\n", modules.Megabytes(course.Size()), course.Commit)
	for _, line := range handout.CourseCommands(at.key, courseDownload(at.url(), course)) {
		fmt.Fprintln(b.Out, "  "+line)
	}
	fmt.Fprintln(b.Out, "and Go modules from this machine, in each shell that they work in:")
	for _, entry := range modules.Env(modulesURL(at.url())) {
		fmt.Fprintf(b.Out, "  export %s\n", entry)
	}
}

// courseDownload is what a handout says of the course.
func courseDownload(server string, course checkout.Archive) *handout.Download {
	return &handout.Download{URL: server + coursePath, SHA256: course.SHA256(), Size: course.Size()}
}

// modulesURL is the GOPROXY of a server. It is plain: the Go command takes no certificate that nobody vouches for, and
// go.sum vouches for modules.
func modulesURL(server string) string {
	return "http://" + strings.TrimPrefix(server, "https://") + modulesPath
}
