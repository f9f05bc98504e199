package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/labs/cka"
	"github.com/example/operator-lab/labs/classroom/board"
	"github.com/example/operator-lab/labs/classroom/share"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/practice"
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
	p, err := practice.Load(a.Root, a.State, cka.Programs())
	if err != nil {
		return exit.Usage("%v", err)
	}
	for _, t := range p.Tasks {
		c.Tasks = append(c.Tasks, &t.Lab)
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
	b := &board.Board{Store: store, Course: c, Log: a.Notice, Address: join, Key: key, Offer: a.offer(ctx, site, address)}
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
	a.Notice("until Ctrl-C; results are kept in " + a.boardDir())
	return group.Wait()
}

// offer gives somebody who joins the kubeconfig of the cluster that they got before, or of the next that nobody has, beside the site.
func (a *app) offer(ctx context.Context, site share.Site, address string) func(name string) (roomclient.JoinAnswer, error) {
	return func(name string) (roomclient.JoinAnswer, error) {
		answer, err := site.Offer()
		names, holders := a.learners(ctx, address)
		i := slices.Index(holders, strings.ToLower(name))
		if i < 0 {
			i = slices.Index(holders, "")
		}
		if err == nil && i >= 0 {
			err = os.WriteFile(a.file(names[i], "learner"), []byte(strings.ToLower(name)), 0o600)
			answer.Kubeconfig, _ = os.ReadFile(a.file(names[i], "kubeconfig")) // it was read a moment ago
		}
		return answer, err
	}
}

func (a *app) file(of, name string) string { return filepath.Join(a.State, "clusters", of, name) }

// learners are the names of learners' clusters, and who has each. Those at another address are left out: nobody reaches them there, and
// who has the kubeconfig of one of kind can be root on this machine.
func (a *app) learners(ctx context.Context, address string) (names, holders []string) {
	records, _ := a.Records(ctx) // one that cannot be read is nobody's
	for _, r := range records {
		kubeconfig, _ := os.ReadFile(a.file(r.Name, "kubeconfig"))
		if r.Kept && r.Label == cli.LearnerLabel && bytes.Contains(kubeconfig, []byte("https://"+address+":")) {
			holder, _ := os.ReadFile(a.file(r.Name, "learner"))
			names, holders = append(names, r.Name), append(holders, string(holder))
		}
	}
	return names, holders
}

func at(address string, port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }

func (a *app) boardDir() string { return filepath.Join(a.State, "board") }

// checkAddress refuses what is no address of this machine.
func checkAddress(address string) error {
	if ip, err := netip.ParseAddr(address); err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() {
		return exit.Usage("ADDRESS=%q is no IPv4 address that learners could reach, such as 192.168.1.5", address)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return exit.Usage("ADDRESS=%s is no address of this machine: `hostname -I` lists them (%v)", address, err)
	}
	return l.Close()
}
