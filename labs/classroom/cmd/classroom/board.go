package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/board/certificate"
	"github.com/example/operator-lab/labs/classroom/board/export"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

const (
	// boardDir is where a board is kept, below .lab.
	boardDir = "board"
	// tokenAge is how long a token is good unless --expires says otherwise: a day of lessons.
	tokenAge = 12 * time.Hour
)

// board is `classroom board`: what its commands share.
type board struct {
	*app
	dir    string // --state
	listen string
	addr   string // --address
	rules  room.Rules
	valid  time.Duration // --expires
	// opened, if it is not nil, is told where the board answers.
	opened func(site)
	// prepare gives what clusters need, on a machine as the copy of the app has it. Tests have one of their own.
	prepare func(ctx context.Context, a *app, n int) (*clusters.Owned, nodeimage.Image, error)
}

func newBoardCommand(a *app) *cobra.Command {
	b := &board{app: a}
	cmd := &cobra.Command{
		Use:   "board",
		Short: "Show an instructor how the room is doing (make board)",
		Long: `board serves a page with every learner and every lab: who is stuck, and on what. It prints the link that opens it.
Results come from the learners' lab check, where their handout names the board.

It is kept in .lab/board until you delete that folder; --state keeps another room's board elsewhere.`,
		Args: cli.NoArguments("board"),
		RunE: func(cmd *cobra.Command, _ []string) error { return b.serve(cmd.Context(), beside{}) },
	}
	b.roomFlags(cmd)
	b.listenFlags(cmd)
	b.expiresFlag(cmd)
	cmd.AddCommand(newBoardTokenCommand(b), newBoardExportCommand(b))
	return cmd
}

// roomFlags say which board, and who is stuck.
func (b *board) roomFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&b.dir, "state", filepath.Join(b.State, boardDir), "folder that the board is kept in")
	flags.DurationVar(&b.rules.Red, "stuck-after", room.DefaultRules.Red,
		"somebody is stuck when the same check is red for so long; 0 is never")
	flags.IntVar(&b.rules.Tries, "stuck-tries", room.DefaultRules.Tries,
		"or for so many tries in a row; 0 is never")
}

// listenFlags say where to serve.
func (b *board) listenFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.listen, "listen", "127.0.0.1:0", "address on this machine; port 0 takes any that is free")
	cmd.Flags().StringVar(&b.addr, "address", "",
		"address of this machine that the whole network may open, instead of loopback")
}

func (b *board) expiresFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&b.valid, "expires", tokenAge, "how long the token is good")
}

// check looks at the flags that cobra cannot.
func (b *board) check() error {
	if b.rules.Red < 0 || b.rules.Tries < 0 {
		return exit.Usage("--stuck-after and --stuck-tries cannot be negative; 0 switches a rule off")
	}
	if b.valid <= 0 {
		return exit.Usage("--expires %v: a token is good for a time above zero, such as 12h", b.valid)
	}
	return nil
}

// open opens the board, and makes it when it is not there.
func (b *board) open(ctx context.Context) (*store.Store, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, b.dir)
	if err != nil {
		return nil, exit.Environment(err)
	}
	return s, nil
}

// openExisting opens the board, and makes none.
func (b *board) openExisting(ctx context.Context) (*store.Store, error) {
	if _, err := os.Stat(filepath.Join(b.dir, store.FileName)); err != nil {
		return nil, exit.Usage("there is no board in %s: --state names another folder", b.dir)
	}
	return b.open(ctx)
}

// beside is what is served besides the board; the zero value is nothing.
type beside struct {
	// public are handlers by their pattern; see [server.Config].
	public map[string]http.Handler
	// learners are handlers for those with a token, by their pattern.
	learners map[string]server.LearnerHandler
	// checked is the beginning of the paths that may be plain; see [server.Config].
	checked string
	// announce tells where they are.
	announce func(s site)
}

// site is where a room's server answers.
type site struct {
	// addr is where learners ask it.
	addr net.Addr
	// key is that of its certificate, which handouts name.
	key string
}

// url is the address for learners.
func (s site) url() string { return "https://" + s.addr.String() }

func (b *board) serve(ctx context.Context, also beside) (err error) {
	where, err := bindAddress(b.listen, b.addr)
	if err != nil {
		return err
	}
	c, err := b.Course()
	if err != nil {
		return err
	}
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	pair, key, err := certificate.Load(b.dir)
	if err != nil {
		return exit.Environment(err)
	}
	srv, err := server.New(ctx, server.Config{
		Store: s, Course: c, Rules: b.rules, Log: b.Progress, Certificate: pair, Checked: also.checked, Public: also.public, Learners: also.learners,
	})
	if err != nil {
		return err
	}
	listeners, err := listen(ctx, where)
	if err != nil {
		return exit.Environment(fmt.Errorf("%w; choose another with --listen 127.0.0.1:0", err))
	}
	here := site{addr: listeners[0].Addr(), key: key}
	if err := b.announce(ctx, s, here, certificate.Fingerprint(pair)); err != nil {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	if also.announce != nil {
		also.announce(here)
	}
	if b.opened != nil {
		b.opened(here)
	}
	return srv.Serve(ctx, listeners...)
}

// listen opens an address, and the same port on loopback, where the instructor's browser needs no certificate.
func listen(ctx context.Context, where string) ([]net.Listener, error) {
	var lc net.ListenConfig
	first, err := lc.Listen(ctx, "tcp", where)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", where, err)
	}
	if ip := first.Addr().(*net.TCPAddr).IP; ip.IsLoopback() || ip.IsUnspecified() {
		return []net.Listener{first}, nil
	}
	loopback := onThisMachine(first.Addr())
	second, err := lc.Listen(ctx, "tcp", loopback)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", loopback, err), first.Close())
	}
	return []net.Listener{first, second}, nil
}

// onThisMachine is the address of the same port on loopback.
func onThisMachine(addr net.Addr) string {
	_, port, _ := net.SplitHostPort(addr.String())
	return net.JoinHostPort("127.0.0.1", port)
}

// announce prints the link. Its token stands behind the #, which browsers keep to themselves.
func (b *board) announce(ctx context.Context, s *store.Store, at site, fingerprint string) error {
	t, err := s.AddInstructorToken(ctx, "instructor, "+time.Now().Format("2006-01-02 15:04"), b.valid)
	if err != nil {
		return err
	}
	page := at.addr.String()
	if b.addr != "" {
		page = onThisMachine(at.addr)
		fmt.Fprintf(b.Err, "Warning: everybody on the network of %s can reach this board. A token opens it, and what passes is encrypted, "+
			"but for Go modules, for which go.sum vouches.\n", b.addr)
	}
	fmt.Fprintf(b.Out, "The board: http://%s/#token=%s\n", page, t.Reveal())
	if b.addr != "" {
		fmt.Fprintf(b.Out, "From another machine it is %s. The browser there warns, as nobody vouches for its certificate; "+
			"compare the SHA-256 fingerprint:\n  %s\n", at.url(), fingerprint)
	}
	fmt.Fprintf(b.Out, "The link is good for %s. Ctrl-C ends the board; what it has is kept in %s\n", b.valid, b.dir)
	return nil
}

// bindAddress is where to listen: on loopback, or, asked for by address, on one of this machine's.
func bindAddress(listen, address string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", exit.Usage("--listen %s: use an address and a port, such as 127.0.0.1:0", listen)
	}
	if address != "" {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			return "", exit.Usage("--address %s is no IP address of this machine, such as 192.168.1.5", address)
		}
		return net.JoinHostPort(ip.String(), port), nil
	}
	if !onLoopback(host) {
		return "", exit.Usage("--listen %s is open to the network: use 127.0.0.1, or say so with --address", listen)
	}
	return net.JoinHostPort(host, port), nil
}

// onLoopback says whether a host, as an address or a name, is this machine to itself alone.
func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func newBoardTokenCommand(b *board) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Let learners and instructors in, and out again",
		RunE:  func(*cobra.Command, []string) error { return exit.Usage("use classroom board token add|list|revoke") },
	}
	var instructor bool
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Print a new token, once; NAME is a learner's name or pseudonym",
		Args:  cli.One("board token add NAME"),
		RunE:  func(cmd *cobra.Command, args []string) error { return b.addToken(cmd.Context(), args[0], instructor) },
	}
	add.Flags().BoolVar(&instructor, "instructor", false, "a token that reads the board, instead of writing results")
	b.expiresFlag(add)
	cmd.AddCommand(add, &cobra.Command{
		Use:   "list",
		Short: "List all tokens, without their secrets",
		Args:  cli.NoArguments("board token list"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return b.listTokens(cmd.Context()) },
	}, &cobra.Command{
		Use:   "revoke NAME",
		Short: "End all tokens of a name, or the one with that id",
		Args:  cli.One("board token revoke NAME"),
		RunE:  func(cmd *cobra.Command, args []string) error { return b.revokeTokens(cmd.Context(), args[0]) },
	})
	return cmd
}

func (b *board) addToken(ctx context.Context, name string, instructor bool) (err error) {
	if err := store.CheckName(name); err != nil {
		return exit.Usage("%v", err)
	}
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	add := s.AddLearnerToken
	if instructor {
		add = s.AddInstructorToken
	}
	t, err := add(ctx, name, b.valid)
	if err != nil {
		return err
	}
	fmt.Fprintln(b.Out, t.Reveal())
	return nil
}

func (b *board) listTokens(ctx context.Context) (err error) {
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	tokens, err := s.Tokens(ctx)
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		fmt.Fprintln(b.Out, "There are no tokens: classroom board token add NAME")
		return nil
	}
	table := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tMAY\tCREATED\tEXPIRES\tSTATE")
	for _, t := range tokens {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Name, may(t), minute(t.Created), minute(t.Expires), tokenState(t))
	}
	return table.Flush()
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func may(t store.TokenInfo) string {
	if t.Instructor {
		return "read"
	}
	return "write"
}

func tokenState(t store.TokenInfo) string {
	switch {
	case t.Revoked:
		return "revoked"
	case !time.Now().Before(t.Expires):
		return "expired"
	}
	return "good"
}

func (b *board) revokeTokens(ctx context.Context, name string) (err error) {
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	n, err := s.Revoke(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return exit.Usage("nobody here is called %s: see classroom board token list", name)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "%d of the tokens of %s ended now.\n", n, name)
	return nil
}

func newBoardExportCommand(b *board) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write what is on the board, as csv or json",
		Args:  cli.NoArguments("board export"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return b.export(cmd.Context(), format) },
	}
	var names []string
	for _, f := range export.Formats() {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	cmd.Flags().StringVar(&format, "format", "csv", fmt.Sprintf("one of %v", names))
	return cmd
}

func (b *board) export(ctx context.Context, name string) (err error) {
	format, err := export.ByName(name)
	if err != nil {
		return err
	}
	c, err := b.Course()
	if err != nil {
		return err
	}
	s, err := b.openExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	records, err := export.Read(ctx, s, c, b.rules, time.Now())
	if err != nil {
		return err
	}
	return format.Write(b.Out, records)
}
