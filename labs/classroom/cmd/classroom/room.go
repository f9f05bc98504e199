package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// roomCommand is what the commands about learners' clusters share, and what they ask of this machine, so that tests can have
// one of their own.
type roomCommand struct {
	*app
	size    int  // --learners
	sized   bool // whether that was given
	roster  string
	address string
	force   bool
	offer   lendFlags

	prepare   func(ctx context.Context, n int) (*clusters.Owned, nodeimage.Image, error) // what n clusters need
	open      func() (*clusters.Owned, error)                                            // clusters as they are
	supplies  func(context.Context, nodeimage.Image) map[doctor.Resource]doctor.Supply
	healthy   func(context.Context, clusters.Provider, *clusters.Cluster) error
	addresses func() ([]net.Addr, error)
	terminal  func() bool // whether somebody can be asked
}

func newRoom(a *app) *roomCommand {
	return &roomCommand{
		app: a, prepare: a.Ready, open: a.Owned, supplies: a.supplies, healthy: clusters.Healthy,
		addresses: net.InterfaceAddrs, terminal: a.AtTerminal,
	}
}

// newRoomCommands are those about the learners' clusters.
func newRoomCommands(c *roomCommand) []*cobra.Command {
	up := &cobra.Command{
		Use:   "up",
		Short: "Make a cluster for each learner, and fix those that do not work (make classroom)",
		Long: `Make a cluster for each learner who has none, and fix those that do not work. One that works is never
touched, so it can be run again at any time: with a larger number or a longer roster it adds, after a reboot it
starts everything again. Nobody is sent away by a smaller number; classroom down ends the room.

The roster is a file with a name on each line, or CSV with a column called name, of which nothing else is read.

Beside them the room lends fresh clusters for verdicts, as many at a time as --lend says; classroom serve does that.
With --playground=false it does nothing else: learners have no clusters of their own.`,
		Args: cli.NoArguments("up"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.sized = cmd.Flags().Changed("learners")
			c.offer.given = cmd.Flags().Changed
			return c.up(cmd.Context())
		},
	}
	c.learnersFlags(up)
	up.Flags().BoolVar(&c.force, "force", false, "go on although this machine has too little for all")
	c.offer.add(up)
	return []*cobra.Command{up, {
		Use:   "status",
		Short: "List the learners, and how their clusters are (make classroom-status)",
		Args:  cli.NoArguments("status"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.status(cmd.Context()) },
	}, {
		Use:   "down",
		Short: "Remove the clusters of the room, and all that is in them (make classroom-down)",
		Args:  cli.NoArguments("down"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.down(cmd.Context()) },
	}}
}

// learnersFlags say who comes, and where their clusters answer.
func (c *roomCommand) learnersFlags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&c.size, "learners", 0,
		"how many there are; those without a name are called learner-1, learner-2, ...")
	cmd.Flags().StringVar(&c.roster, "roster", "", "file with their names")
	cmd.Flags().StringVar(&c.address, "address", "",
		"address of this machine on which the whole network may reach the clusters, instead of loopback")
}

func (c *roomCommand) up(ctx context.Context) error {
	unlock, err := c.lockRoom()
	if err != nil {
		return err
	}
	defer unlock()
	r, err := roster.Load(c.State)
	if err != nil {
		return err
	}
	before := len(r.Learners)
	if err := c.enrol(r); err != nil {
		return err
	}
	if err := c.settle(ctx, r); err != nil {
		return err
	}
	if err := c.decide(r, before); err != nil {
		return err
	}
	if err := c.agreeToRoot(r, r.Address, c.terminal()); err != nil {
		return err
	}
	wanted := 1
	if !r.LendsOnly && !c.force {
		wanted = len(r.Learners)
	}
	owned, image, err := c.prepare(ctx, wanted)
	if err != nil {
		return err
	}
	h := room.New(owned, c.options(r, owned, image))
	found, err := h.Look(ctx, r.Clusters())
	if err != nil {
		return err
	}
	if err := c.fits(ctx, r, owned, image, found, before); err != nil {
		return err
	}
	if err := r.Save(c.State); err != nil {
		return err
	}
	if r.LendsOnly {
		c.reportLending(r)
		return nil
	}
	return c.report(ctx, r, h.Up(ctx, found))
}

func (a *app) lockRoom() (unlock func(), err error) { return a.Lock("classroom", "the classroom") }

func (a *app) lockGrading() (unlock func(), err error) { return a.Lock("grade", "classroom grade") }

func (a *app) lockServer() (unlock func(), err error) {
	return a.Lock("classroom-serve", "this room's server")
}

// enrol adds those who are new, and says so.
func (c *roomCommand) enrol(r *roster.Room) error {
	came, others, err := c.admit(r)
	if err == nil {
		c.reportNewcomers(r, came, others)
	}
	return err
}

// admit adds those who are new, and returns them, and those of the room who are not on the roster.
func (c *roomCommand) admit(r *roster.Room) (came, others []roster.Learner, err error) {
	switch {
	case c.sized && c.roster != "":
		return nil, nil, exit.Usage("N and ROSTER together: a roster says how many there are; leave one of them out")
	case c.roster != "":
		entries, err := roster.ReadRoster(c.roster)
		if err != nil {
			return nil, nil, exit.Usage("%v", err)
		}
		came, others = r.Admit(entries)
	case c.sized && (c.size < 1 || c.size > roster.MostLearners):
		return nil, nil, exit.Usage("N=%d: a room has 1 to %d learners", c.size, roster.MostLearners)
	case c.sized:
		came = r.Grow(c.size)
	case len(r.Learners) == 0:
		return nil, nil, exit.Usage("nobody is in the room: say how many come, N=12, or who, ROSTER=roster.csv")
	}
	if len(r.Learners) > roster.MostLearners {
		return nil, nil, exit.Usage("with these there are %d learners, and a room has %d at most",
			len(r.Learners), roster.MostLearners)
	}
	return came, others, nil
}

// endsRoom is how to begin anew.
const endsRoom = "make classroom-down ends the room"

func (c *roomCommand) reportNewcomers(r *roster.Room, came, others []roster.Learner) {
	before := len(r.Learners) - len(came)
	switch {
	case before == 0:
		c.Progress(fmt.Sprintf("%s in the room", cli.Count(len(came), "learner")))
	case len(came) > 0:
		c.Progress(fmt.Sprintf("%s in the room, %d of them new", cli.Count(len(r.Learners), "learner"), len(came)))
	}
	if c.sized && c.size < len(r.Learners) {
		c.Progress(fmt.Sprintf("N=%d, and %s in the room: all of them stay; %s",
			c.size, cli.Count(len(r.Learners), "learner"), endsRoom))
	}
	if len(others) > 0 {
		c.Progress(fmt.Sprintf("not on the roster, and they stay: %s; %s", names(others), endsRoom))
	}
}

// most is how many names a line has.
const most = 8

func names(learners []roster.Learner) string {
	var all []string
	for _, l := range learners {
		all = append(all, l.Name)
	}
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(all, ", ")
}

// settle decides what the clusters of the room are made with and where they answer: as those that are there.
func (c *roomCommand) settle(ctx context.Context, r *roster.Room) error {
	switch {
	case r.Provider == "":
		if err := c.useAddress(r); err != nil {
			return err
		}
		if r.Address != "" && c.Cluster == cli.Auto {
			c.Cluster = cli.Embedded
			c.Progress("with ADDRESS, clusters are embedded control planes, in which no Pods run: " + rootHere + " with kind (CLUSTER=kind has them all the same)")
		}
		r.Provider = c.Chosen(ctx)
	case c.Cluster != cli.Auto && c.Cluster != r.Provider:
		return exit.Usage("CLUSTER=%s, and the clusters of this room are %s: leave it out; %s",
			c.Cluster, r.Provider, endsRoom)
	case c.address != "" && outside(c.address) != r.Address:
		return exit.Usage("ADDRESS=%s, and the clusters of this room answer on %s: leave it out; %s",
			c.address, orLoopback(r.Address), endsRoom)
	default:
		c.Cluster, c.address = r.Provider, r.Address
		if err := c.useAddress(r); err != nil {
			return err
		}
	}
	c.warn(r)
	return nil
}

// warn says what it means that a room is open to a network.
func (c *roomCommand) warn(r *roster.Room) {
	if r.Address == "" {
		return
	}
	power := "may do everything in that cluster"
	if r.Provider == cli.Kind {
		power = rootHere
	}
	fmt.Fprintf(c.Err, "Warning: everybody on the network of %s can reach the API servers of this room. Whoever has a "+
		"kubeconfig %s.\n", r.Address, power)
}

// rootHere is what a kubeconfig of a kind cluster is good for.
const rootHere = "is root on this machine by way of a privileged Pod"

// agreeToRoot asks before kind clusters of a room can be reached from a network, once for each address, and remembers the answer.
func (a *app) agreeToRoot(r *roster.Room, address string, terminal bool) error {
	if address == "" || r.Provider != cli.Kind || slices.Contains(r.OpenOn, address) {
		return nil
	}
	what := "With kind clusters on " + address + ", whoever has a learner's kubeconfig " + rootHere + "."
	switch { // that a CI system runs us is no yes to this
	case a.Yes:
		a.Progress(what)
	case !terminal:
		return exit.Usage("%s If you want that, say YES=1; CLUSTER=embedded does without", what)
	case !a.Ask(what + " Go on?"):
		return exit.Usage("no cluster was made, because the answer was not yes")
	}
	unlock, err := a.lockGrading() // else graded code would meet learners who are root
	if err != nil {
		return err
	}
	defer unlock()
	saved, err := roster.Load(a.State)
	if err != nil {
		return err
	}
	r.OpenOn = append(r.OpenOn, address)
	saved.OpenOn = r.OpenOn
	return saved.Save(a.State) // now, because the clusters may take minutes, in which nobody may begin to grade
}

// useAddress is for an address that this machine has.
func (c *roomCommand) useAddress(r *roster.Room) error {
	if r.Address = outside(c.address); r.Address == "" {
		return nil
	}
	if err := clusters.CheckAddress(c.address); err != nil {
		return exit.Usage("ADDRESS=%v", err)
	}
	all, err := c.addresses()
	if err != nil {
		return exit.Environment(fmt.Errorf("list the addresses of this machine: %w", err))
	}
	var have []string
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is4() {
			have = append(have, prefix.Addr().String())
		}
	}
	if !slices.Contains(have, c.address) {
		return exit.Usage("ADDRESS=%s is no address of this machine, which has %s", c.address, strings.Join(have, ", "))
	}
	return nil
}

// outside is an address as the room keeps it: "" for the one that is used without asking.
func outside(address string) string {
	if address == loopback {
		return ""
	}
	return address
}

const loopback = "127.0.0.1"

func orLoopback(address string) string {
	if address == "" {
		return loopback
	}
	return address
}

func (c *roomCommand) options(r *roster.Room, owned *clusters.Owned, image nodeimage.Image) room.Options {
	return room.Options{
		Purpose: cli.RoomPurpose,
		Spec:    c.SpecForOthers(r.Address, owned, image),
		Healthy: c.healthy, Progress: c.reportSteps(r),
	}
}
