package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

// upCommand has the flags of up.
type upCommand struct {
	*app
	size                    int
	names, address, replace string
}

func newRoomCommands(a *app) []*cobra.Command {
	c := &upCommand{app: a}
	up := &cobra.Command{
		Use:   "up",
		Short: "A cluster for each learner; run again, it makes what is missing (make classroom N=12)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.up(cmd.Context()) },
	}
	up.Flags().IntVar(&c.size, "learners", 0, "how many learners there are")
	up.Flags().StringVar(&c.names, "names", "", "file with the name of a learner in each line")
	up.Flags().StringVar(&c.address, "address", "", "address of this machine on which learners' machines reach their clusters, which are embedded then")
	up.Flags().StringVar(&c.replace, "replace", "", "learner who gets a new cluster in the place of theirs")
	return []*cobra.Command{up, {
		Use:   "status",
		Short: "Who has a cluster, and how it is (make classroom-status)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}, {
		Use:   "down",
		Short: "Remove all clusters of the classroom; results of the board stay (make classroom-down)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context()) },
	}}
}

func (c *upCommand) up(ctx context.Context) error {
	unlock, err := c.Lock("classroom", "this classroom")
	if err != nil {
		return err
	}
	defer unlock()
	r, err := room.Load(c.State)
	if err != nil {
		return err
	}
	if err := c.fill(r); err != nil {
		return err
	}
	if err := c.choose(ctx, r); err != nil {
		return err
	}
	owned, image, err := c.Ready(ctx, len(r.Learners))
	if err != nil {
		return err
	}
	if err := c.fits(ctx, r, owned); err != nil {
		return err
	}
	// Before the clusters, which take minutes: people may join meanwhile.
	r, err = room.Update(c.State, func(saved *room.Room) error {
		saved.Provider, saved.Address = r.Provider, r.Address
		return c.fill(saved)
	})
	if err != nil {
		return err
	}
	if c.replace != "" {
		l := r.Find(c.replace)
		if l == nil {
			return exit.Usage("nobody in the classroom is called %s: make classroom-status lists them", c.replace)
		}
		if err := owned.Delete(ctx, l.Cluster); err != nil {
			return err
		}
	}
	spec := c.Spec(owned, image)
	spec.APIServerAddress, spec.UntrustedAdmin = r.Address, true
	var telling sync.Mutex
	made := r.Up(ctx, owned, spec, func(name, what string) {
		telling.Lock()
		defer telling.Unlock()
		c.Progress(name + ": " + what)
	})
	if err := c.status(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if made != nil && ctx.Err() == nil {
		return exit.Environment(fmt.Errorf("%w\nmake classroom tries these again", made))
	}
	return errors.Join(ctx.Err(), made)
}

// fill adds learners who are new.
func (c *upCommand) fill(r *room.Room) error {
	if c.names != "" {
		if err := r.Name(c.names); err != nil {
			return exit.Usage("NAMES: %v", err)
		}
	}
	if r.Number(c.size); len(r.Learners) == 0 {
		return exit.Usage("nobody is in the classroom: say how many come, N=12, or who, NAMES=file")
	}
	return nil
}

// choose decides what makes the clusters, and where they answer: as those that are there.
func (c *upCommand) choose(ctx context.Context, r *room.Room) error {
	if r.Provider != "" {
		if c.Cluster != cli.Auto && c.Cluster != r.Provider || c.address != "" && c.address != r.Address {
			return exit.Usage("the clusters of this classroom are %s, on %s: leave CLUSTER and ADDRESS out, or make classroom-down first",
				r.Provider, cmp.Or(r.Address, "this machine alone"))
		}
		c.Cluster = r.Provider
		return nil
	}
	if c.address != "" {
		if err := checkAddress(c.address); err != nil {
			return err
		}
		if c.Cluster == cli.Kind {
			return exit.Usage("CLUSTER=kind with ADDRESS: who has a kubeconfig of a kind cluster is root on this machine by way of a privileged Pod; leave CLUSTER out")
		}
		c.Cluster = cli.Embedded
	}
	r.Provider, r.Address = c.Chosen(ctx), c.address
	return nil
}

// checkAddress refuses what is no address of this machine.
func checkAddress(address string) error {
	if ip, err := netip.ParseAddr(address); err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() {
		return exit.Usage("ADDRESS=%q is no IPv4 address that an API server could answer on, such as 192.168.1.5", address)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return exit.Usage("ADDRESS=%s is no address of this machine: `hostname -I` lists them (%v)", address, err)
	}
	return l.Close()
}

// fits refuses a room that is too large for this machine, with the number that is not.
func (c *upCommand) fits(ctx context.Context, r *room.Room, owned *clusters.Manager) error {
	owners, err := room.Owners(ctx, owned)
	if err != nil {
		return err
	}
	missing := 0
	for _, l := range r.Learners {
		if !owners[l.Cluster].Kept {
			missing++
		}
	}
	free, known := doctor.FreeMemory()
	if more, short := room.Fits(c.Cluster == cli.Embedded, free, len(r.Learners)-missing); known && missing > more {
		return exit.Usage("this machine has not enough %s for %s: N=%d fits", short, cli.Count(len(r.Learners), "learner"), len(r.Learners)-missing+more)
	}
	return nil
}

// lookTimeout bounds the look at one cluster: one that hangs should not hold up a list.
const lookTimeout = 20 * time.Second

func (a *app) status(ctx context.Context) error {
	r, err := room.Load(a.State)
	if err != nil {
		return err
	}
	if len(r.Learners) == 0 {
		fmt.Fprintln(a.Out, "Nobody is in the classroom: make classroom N=12 makes clusters for twelve.")
		return nil
	}
	a.Cluster = r.Provider
	owned, err := a.Owned(a.Cluster)
	if err != nil {
		return err
	}
	owners, err := room.Owners(ctx, owned)
	if err != nil {
		return err
	}
	rows := [][]string{{"LEARNER", "CLUSTER", "KUBECONFIG"}}
	for _, l := range r.Learners {
		o, there := owners[l.Cluster]
		state := "missing: make classroom makes it"
		switch {
		case there && o.Kept:
			state = a.health(ctx, owned, l, o.Cluster)
		case there && o.Alive():
			state = "being made"
		}
		rows = append(rows, []string{l.Name, state, owned.Kubeconfig(l.Cluster)})
	}
	return plain.Table(a.Out, rows...)
}

func (a *app) health(ctx context.Context, owned *clusters.Manager, l room.Learner, c *clusters.Cluster) string {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := owned.Healthy(ctx, c); err != nil {
		what, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Sprintf("broken (%s): make classroom REPLACE=%s makes a new one", what, l.Name)
	}
	return "ready, Kubernetes " + c.Version
}

func (a *app) down(ctx context.Context) error {
	unlock, err := a.Lock("classroom", "this classroom")
	if err != nil {
		return err
	}
	defer unlock()
	owners, err := a.Records(ctx)
	if err != nil {
		return err
	}
	owners = slices.DeleteFunc(owners, func(o clusters.Record) bool { return o.Label != cli.RoomLabel })
	if len(owners) > 0 {
		what := "This removes " + cli.Count(len(owners), "cluster") + ", and all that the learners have in there."
		if !a.Agree(what) {
			return exit.Usage("nothing was removed, because nobody agreed to it: make classroom-down YES=1")
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	errs := make([]error, len(owners))
	for i, o := range owners {
		group.Go(func() error {
			owned, err := a.Owned(o.Provider)
			if err == nil {
				err = owned.Delete(ctx, o.Name)
			}
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait() // errs has them all
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(a.State, room.FileName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fmt.Fprintf(a.Out, "Removed %s.\n", cli.Count(len(owners), "cluster"))
	kept := a.boardDir() + time.Now().Format("-20060102-150405")
	if err := os.Rename(a.boardDir(), kept); err == nil {
		fmt.Fprintf(a.Out, "What was on the board stays in %s.\n", kept)
	}
	return nil
}

func (a *app) boardDir() string { return filepath.Join(a.State, "board") }
