package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/lending"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// lendFlags say what a room lends.
type lendFlags struct {
	lend       int  // --lend
	ready      int  // --ready
	playground bool // --playground
	// given says whether a flag was.
	given func(flag string) bool
}

func (l *lendFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&l.lend, "lend", 0,
		"how many clusters are lent at a time for verdicts (default: one per core, as far as they fit); 0 lends none")
	cmd.Flags().IntVar(&l.ready, "ready", 1, "how many more wait for the next borrowers; embedded ones cannot wait")
	cmd.Flags().BoolVar(&l.playground, "playground", true,
		"a cluster of their own for each learner; false makes a room that only lends")
}

// check looks at the flags that cobra cannot.
func (l *lendFlags) check() error {
	switch {
	case l.lend < 0 || l.lend > roster.MostLearners:
		return exit.Usage("LEND=%d: a room lends 0 to %d clusters at a time", l.lend, roster.MostLearners)
	case l.ready < 1 || l.ready > roster.MostLearners:
		return exit.Usage("READY=%d: 1 to %d clusters wait for the next borrowers", l.ready, roster.MostLearners)
	}
	return nil
}

// decide says what the room lends: what is asked for, or was before, else one cluster per core. A check wants
// a core for itself, or takes longer. before is how many learners were there already.
func (c *roomCommand) decide(r *roster.Room, before int) error {
	if err := c.offer.check(); err != nil {
		return err
	}
	if c.offer.given("playground") {
		if before > 0 && !c.offer.playground && !r.LendsOnly {
			return exit.Usage("PLAYGROUND=0, and the learners of this room have clusters of their own: leave it out; %s", endsRoom)
		}
		r.LendsOnly = !c.offer.playground
	}
	switch {
	case c.offer.given("lend"):
		r.Lend, r.LendAsked = c.offer.lend, true
	case !r.LendAsked:
		r.Lend = min(room.Limit(), len(r.Learners))
	}
	if r.LendsOnly && r.Lend == 0 {
		return exit.Usage("LEND=0, and the learners of this room have no clusters of their own: it lends one at least")
	}
	if c.offer.given("ready") || r.Ready == 0 {
		r.Ready = c.offer.ready
	}
	if r.Provider == cli.Embedded {
		r.Ready = 0
	}
	return nil
}

// lendLess has the room lend one cluster less, if nobody asked for so many: learners' own clusters come first.
func (c *roomCommand) lendLess(r *roster.Room) bool {
	if c.offer.given("lend") || r.Lend == 0 || r.LendsOnly && r.Lend == 1 {
		return false
	}
	r.Lend--
	r.LendAsked = false
	return true
}

// lent is how many clusters for borrowers there are right now, while the room's server runs.
func (c *roomCommand) lent(ctx context.Context) (n int, err error) {
	owners, err := c.Owners(ctx)
	for _, o := range owners {
		if o.Purpose == pool.Purpose && o.Alive() {
			n++
		}
	}
	return n, err
}

// lends says how many clusters a room lends, as part of a sentence.
func lends(r *roster.Room) string { return cli.Count(r.Lend, "cluster") + " at a time for verdicts" }

// reportLending says what became of a room whose learners have no clusters of their own.
func (c *roomCommand) reportLending(r *roster.Room) {
	fmt.Fprintf(c.Out, "%s, and no clusters of their own: the room lends %s.\n", cli.Count(len(r.Learners), "learner"), lends(r))
	fmt.Fprintln(c.Out, `
  make classroom-serve      lends them, for as long as it runs
  make classroom-handouts   tells learners' machines where
  make classroom-down       forgets the room`)
}

// lender is what lends while the room's server runs. nil lends nothing.
type lender struct {
	server   *lending.Server
	pool     *pool.Pool
	room     *roster.Room
	progress func(string)
}

// openLender begins to lend what the room was made to lend; nil is one that lends nothing. A room that cannot lend
// still has its board, and its modules.
func (b *board) openLender(ctx context.Context) (*lender, error) {
	r, err := roster.Load(b.State)
	if err != nil {
		return nil, err
	}
	if len(r.Learners) == 0 {
		b.Progress("nobody is in the room, so no clusters are lent; after make classroom, start this again")
	}
	if r.Lend == 0 {
		return nil, nil
	}
	address := outside(b.addr)
	if address != "" {
		if err := clusters.CheckAddress(address); err != nil {
			return nil, exit.Usage("this room lends clusters, and --address %w; make classroom LEND=0 lends none", err)
		}
		if r, err = b.openRoom(address); err != nil {
			return nil, err
		}
	}
	machine := *b.app
	machine.Cluster = r.Provider
	owned, image, err := b.prepare(ctx, &machine, r.Lend+r.Ready+1)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.Progress(fmt.Sprintf("this room lends no clusters now: %v", err))
		return nil, nil
	}
	waiting := machine.StartPool(owned, machine.SpecForOthers(address, owned, image), r.Ready)
	server := lending.Open(lending.Options{Pool: waiting, Provider: owned.Provider(), AtOnce: r.Lend, Log: b.Progress})
	return &lender{server, waiting, r, b.Progress}, nil
}

// openRoom asks whether clusters of the room may answer on the address, and remembers the answer.
func (b *board) openRoom(address string) (*roster.Room, error) {
	unlock, err := b.lockRoom()
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := roster.Load(b.State)
	if err != nil {
		return nil, err
	}
	return r, b.agreeToRoot(r, address, b.AtTerminal())
}

// Close takes back what is lent, and returns when all of it is gone, and all that waited.
func (l *lender) Close() error {
	if l == nil {
		return nil
	}
	if n := l.server.Close(); n > 0 {
		l.progress("taking back " + cli.Count(n, "cluster") + " that learners had borrowed")
	}
	return l.pool.Close()
}

// routes are what learners ask for clusters.
func (l *lender) routes() map[string]server.LearnerHandler {
	if l == nil {
		return nil
	}
	return l.server.Routes()
}

// print says what is lent, and where.
func (l *lender) print(w io.Writer) {
	if l != nil {
		fmt.Fprintf(w, "\nThe room lends %s, to learners with CLUSTER=room, which their handouts set.\n", lends(l.room))
	}
}
