package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/classroom/board/certificate"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/checkout"
	"github.com/example/operator-lab/labs/classroom/handout"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// handoutsDir is where handouts are written, below .lab.
const handoutsDir = "handouts"

// handouts is `classroom handouts`.
type handouts struct {
	*board
	server string // --server
}

func newHandoutsCommand(a *app) *cobra.Command {
	h := &handouts{board: &board{app: a}}
	cmd := &cobra.Command{
		Use:   "handouts",
		Short: "Write what each learner of the room is given (make classroom-handouts)",
		Long: `handouts writes a folder and a zip for each learner of the room into .lab/handouts: the kubeconfig of their cluster,
the starter workspace, a page that says what to do first; and with --server, the address of classroom serve, the
board with a token of their own, the settings for Go modules, and CLUSTER=room where the room lends clusters.

Run again, it writes them anew; tokens that were handed out before stay good until they expire.`,
		Args: cli.NoArguments("handouts"),
		RunE: func(cmd *cobra.Command, _ []string) error { return h.write(cmd.Context()) },
	}
	h.roomFlags(cmd)
	h.expiresFlag(cmd)
	cmd.Flags().StringVar(&h.server, "server", "", "address of the room's server, such as https://192.168.1.5:7777")
	return cmd
}

func (h *handouts) write(ctx context.Context) error {
	if err := h.checkServer(); err != nil {
		return err
	}
	r, err := roster.Load(h.State)
	if err != nil {
		return err
	}
	if len(r.Learners) == 0 {
		return exit.Usage("nobody is in the room: make classroom N=12 first, or ROSTER=roster.csv")
	}
	c, err := h.Course()
	if err != nil {
		return err
	}
	if h.onlyHere(r) && !r.LendsOnly {
		u, _ := url.Parse(h.server) // as checkServer had it
		h.Progress("the clusters of this room answer on this machine only, so there are no kubeconfigs in handouts for others: " +
			"make classroom-down, and make classroom with N= or ROSTER=, and ADDRESS=" + u.Hostname())
	}
	h.Progress("rendering the starter")
	starter, err := workspace.Starter(ctx, c)
	if err != nil {
		return err
	}
	if err := h.writeAll(ctx, r, starter); err != nil {
		return err
	}
	fmt.Fprintf(h.Out, "%s in %s.\n", cli.Count(len(r.Learners), "handout"), filepath.Join(h.State, handoutsDir))
	if h.server == "" {
		fmt.Fprintln(h.Out, "Without --server they name no board, no modules and nobody who lends: make classroom-handouts SERVER=https://192.168.1.5:7777")
	}
	return nil
}

// onlyHere says whether the clusters of a room are for this machine alone, and the handouts for others. A kubeconfig of a kind cluster
// would make its owner root here, should they reach it after all (docs/security.md).
func (h *handouts) onlyHere(r *roster.Room) bool {
	u, err := url.Parse(h.server)
	return r.Address == "" && h.server != "" && (err != nil || !onLoopback(u.Hostname()))
}

// checkServer wants an address and nothing behind it.
func (h *handouts) checkServer() error {
	h.server = strings.TrimSuffix(h.server, "/")
	if h.server == "" {
		return nil
	}
	u, err := url.Parse(h.server)
	if err != nil || u.Scheme != "https" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return exit.Usage("--server %q: give the address that make classroom-serve PORT=7777 takes, such as https://192.168.1.5:7777", h.server)
	}
	return h.check()
}

// writeAll writes one handout after the other.
func (h *handouts) writeAll(ctx context.Context, room *roster.Room, starter course.Tree) (err error) {
	connect := func(*handout.Handout) error { return nil }
	if h.server != "" {
		s, openErr := h.open(ctx)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		if connect, err = h.connector(ctx, s); err != nil {
			return err
		}
	}
	for _, l := range room.Learners {
		own := handout.Handout{Learner: handout.Learner{ID: l.ID, Name: l.Name}, Workspace: starter}
		own.Lends = h.server != "" && room.Lend > 0
		switch _, err := os.Stat(l.Kubeconfig(h.State)); {
		case room.LendsOnly || h.onlyHere(room):
		case err != nil:
			h.Progress(l.Name + " has no cluster; make classroom makes it, and then handouts again")
		default:
			own.Kubeconfig = l.Kubeconfig(h.State)
		}
		if err := connect(&own); err != nil {
			return err
		}
		written, err := handout.Write(ctx, filepath.Join(h.State, handoutsDir), own)
		if err != nil {
			return err
		}
		h.Progress("wrote " + written.Archive)
	}
	return nil
}

// connector gives handouts their tokens, the key of the room's server and what that has.
func (h *handouts) connector(ctx context.Context, s *store.Store) (func(*handout.Handout) error, error) {
	_, key, err := certificate.Load(h.dir)
	if err != nil {
		return nil, exit.Environment(err)
	}
	course, err := checkout.Pack(ctx, h.Root)
	if err != nil {
		return nil, exit.Usage("%w; make handouts from a git checkout", err)
	}
	return func(own *handout.Handout) error {
		t, err := s.AddLearnerToken(ctx, own.Learner.Name, h.valid)
		if err != nil {
			return err
		}
		own.Key, own.Board = key, &handout.Board{URL: h.server, Token: t}
		own.Course = courseDownload(h.server, course)
		own.Modules = modulesURL(h.server)
		own.Image = h.roomImage(h.server)
		return nil
	}, nil
}
