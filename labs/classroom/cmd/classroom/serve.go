package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/labs/classroom/board"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/share"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

const loopback = "127.0.0.1"

func newServeCommand(a *app) *cobra.Command {
	var address string
	var port int
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "The classroom's server and its board, until Ctrl-C (make board)",
		Long: `serve shows on a page of this machine who is where, and who is stuck. It prints the command with which learners join; their
verdicts then come to the page. It also offers what make classroom-modules has collected.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), address, port) },
	}
	cmd.Flags().StringVar(&address, "address", loopback, "address of this machine on which learners reach it")
	cmd.Flags().IntVar(&port, "port", 7777, "port to join at; files are at the next one, and the page is at the one after that")
	return cmd
}

func (a *app) serve(ctx context.Context, address string, port int) (err error) {
	if err := checkAddress(address); err != nil {
		return err
	}
	unlock, err := a.Lock("board", "this board")
	if err != nil {
		return err
	}
	defer unlock()
	c, err := a.Course()
	if err != nil {
		return err
	}
	store, err := board.Open(a.boardDir(), c)
	if err != nil {
		return exit.Environment(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	certificate, key, err := board.Certificate(a.boardDir())
	if err != nil {
		return exit.Environment(err)
	}
	join, files, page := at(address, port), at(address, port+1), at(loopback, port+2)
	site := share.Site{Folder: a.share(), URL: "http://" + files, Room: join, Key: key}
	b := &board.Board{Store: store, Course: c, Log: a.Progress, Address: join, Key: key, Offer: a.offer(site)}
	var group errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, s := range []struct {
		address string
		server  *http.Server
	}{
		{join, board.NewServer(b.ForLearners(), &certificate)},
		{files, board.NewServer(site.Handler(), nil)},
		{page, board.NewServer(b.Page(), nil)},
	} {
		l, err := net.Listen("tcp", s.address)
		if err != nil {
			cancel()
			return errors.Join(exit.Usage("%v: PORT=n takes another one", err), group.Wait())
		}
		group.Go(func() error {
			defer cancel()
			return board.Serve(ctx, l, s.server)
		})
	}
	fmt.Fprintf(a.Out, "The board:  http://%s\nTo join:    make join ROOM=%s KEY=%s NAME=…\nThe course: http://%s\n", page, join, key, files)
	a.Progress("until Ctrl-C; results are kept in " + a.boardDir())
	return group.Wait()
}

func at(address string, port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }

// offer gives who joins what the site has, and their cluster.
func (a *app) offer(site share.Site) func(name string) (roomclient.JoinAnswer, error) {
	return func(name string) (answer roomclient.JoinAnswer, err error) {
		if answer, err = site.Offer(); err != nil {
			return answer, err
		}
		var l *room.Learner
		if _, err := room.Update(a.State, func(r *room.Room) error { l = r.Join(name); return nil }); err != nil {
			return answer, err
		}
		if l == nil {
			return answer, nil
		}
		owned, err := a.Owned(a.Cluster)
		if err == nil {
			answer.Kubeconfig, err = os.ReadFile(owned.Kubeconfig(l.Cluster))
		}
		if errors.Is(err, os.ErrNotExist) { // it is not made yet: joining again gets it
			err = nil
		}
		return answer, err
	}
}
