package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/checkout"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
)

// roomListen is where the room's server listens in the guide for instructors.
const roomListen = "127.0.0.1:7777"

// roomDoctor is `classroom doctor`.
type roomDoctor struct {
	*roomCommand
	listen string // --listen

	machine func(context.Context) []doctor.Finding // what lab doctor finds
	image   func(context.Context) (nodeimage.Image, bool, error)
	packed  func(context.Context) (bool, error) // whether learners' engines can have the node image
	// runtimes are those of the container engine, and its default
	runtimes func(context.Context) ([]string, string, error)

	room   *roster.Room // as it will be
	before int          // how many learners are in it now
	asked  string       // --cluster
}

func newDoctorCommand(c *roomCommand) *cobra.Command {
	d := newRoomDoctor(c)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what on this machine would stop a room, and the command that fixes it (make doctor N=12)",
		Long: `Look at everything that lab doctor looks at, and at what a room needs beside it: memory, disk and kernel for so many
clusters, the Go modules of the labs, the course as it is committed, and the port of the room's server. Each finding is
one line, with the command that fixes it. Nothing is changed, and nothing is made.

The exit code is 3 when the room could not work.`,
		Args: cli.NoArguments("doctor"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.sized = cmd.Flags().Changed("learners")
			d.offer.given = cmd.Flags().Changed
			return d.run(cmd.Context())
		},
	}
	d.learnersFlags(cmd)
	d.offer.add(cmd)
	cmd.Flags().StringVar(&d.listen, "listen", roomListen,
		"where the room's server will listen; with --address only the port counts")
	return cmd
}

func newRoomDoctor(c *roomCommand) *roomDoctor {
	return &roomDoctor{
		roomCommand: c,
		machine:     func(ctx context.Context) []doctor.Finding { return doctor.Run(ctx, c.DoctorOptions()) },
		image:       func(ctx context.Context) (nodeimage.Image, bool, error) { return c.LocalNodeImage(ctx, c.Engine()) },
		packed:      func(ctx context.Context) (bool, error) { return nodeimage.IsPacked(ctx, c.Engine(), c.Cache) },
		runtimes: func(ctx context.Context) ([]string, string, error) {
			return grade.Runtimes(ctx, c.Engine())
		},
	}
}

func (d *roomDoctor) run(ctx context.Context) error {
	if err := d.plan(ctx); err != nil {
		return err
	}
	var all []doctor.Finding
	for _, look := range []func(context.Context) []doctor.Finding{d.machine, d.fit, d.modules, d.course, d.port, d.grading} {
		found := look(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		d.ShowFindings(found)
		all = append(all, found...)
	}
	return doctor.Problem(all)
}

// plan reads the command line as `classroom up` would, and changes nothing.
func (d *roomDoctor) plan(ctx context.Context) (err error) {
	if d.room, err = roster.Load(d.State); err != nil {
		return err
	}
	d.before = len(d.room.Learners)
	if _, _, err := d.admit(d.room); err != nil {
		return err
	}
	d.asked = d.Cluster
	if err := d.settle(ctx, d.room); err != nil {
		return err
	}
	if err := d.decide(d.room, d.before); err != nil {
		return err
	}
	_, err = bindAddress(d.listen, d.room.Address)
	return err
}

// good is a finding that nothing is wrong.
func good(name, format string, args ...any) doctor.Finding {
	return doctor.Finding{Name: name, OK: true, Detail: fmt.Sprintf(format, args...)}
}

// stops is the finding that the room could not work. A problem of the machine names the command that fixes it, in place
// of fix.
func stops(name string, err error, fix string) doctor.Finding {
	if p, ok := errors.AsType[*clusters.Problem](err); ok && p.Fix != "" {
		fix = p.Fix
	}
	return doctor.Finding{Name: name, Severity: doctor.Stops, Detail: finding(err), Fix: fix}
}

// warns is a finding of something to look at before the room begins.
func warns(name, detail, fix string) doctor.Finding {
	return doctor.Finding{Name: name, Severity: doctor.Warns, Detail: detail, Fix: fix}
}

// fit does the arithmetic of `classroom up`.
func (d *roomDoctor) fit(ctx context.Context) []doctor.Finding {
	const name = "room"
	var image nodeimage.Image
	if d.Cluster != cli.Embedded {
		found, here, err := d.image(ctx)
		if err != nil || !here {
			return []doctor.Finding{warns(name, "whether it fits can be said once the node image is here", "make setup")}
		}
		image = found
	}
	owned, err := d.open()
	if err != nil {
		return []doctor.Finding{stops(name, err, "make doctor")}
	}
	found, err := room.New(owned, room.Options{Healthy: d.healthy}).Look(ctx, d.room.Clusters())
	if err != nil {
		return []doctor.Finding{stops(name, err, "make doctor")}
	}
	short, lendable, err := d.shortage(ctx, d.room, owned, image, found)
	if err != nil {
		return []doctor.Finding{stops(name, err, "make doctor")}
	}
	who := cli.Count(len(d.room.Learners), "learner")
	if d.room.Lend > 0 {
		who += " and " + lends(d.room)
	}
	if len(short) > 0 {
		fix := short[0].Supply.Fix
		if fix == "" {
			fix = d.ways(d.room, short[0], max(0, short[0].Fits-lendable), d.before)
		}
		err := fmt.Errorf("%s fit, and not %s: not enough %s", cli.Count(short[0].Fits, "cluster"), who, short[0])
		return []doctor.Finding{stops(name, err, fix)}
	}
	all := []doctor.Finding{good(name, "%s fit", who)}
	if d.Cluster != cli.Embedded && d.room.Lend == 0 { // else verdicts need no image at learners' machines
		if packed, err := d.packed(ctx); err == nil && !packed {
			all = append(all, warns("image file",
				"the node image is not packed, so learners with a container engine have to pull or build one", "make classroom-image"))
		}
	}
	return all
}

// missingModules are those that the labs need and that are not in the room's folder.
func (d *roomDoctor) missingModules() ([]string, error) {
	asked := *d.app
	asked.Cluster = d.asked // a room of kind clusters has learners who take the embedded control plane
	needs, done, err := asked.moduleNeeds()
	if err != nil {
		return nil, err
	}
	defer done()
	return d.roomModules().Missing(needs)
}

// modules looks for the modules that the labs' go.mod files name.
func (d *roomDoctor) modules(context.Context) []doctor.Finding {
	const name, fix = "go modules", "make classroom-modules"
	absent, err := d.missingModules()
	switch {
	case err != nil:
		return []doctor.Finding{stops(name, err, fix)}
	case len(absent) > 0:
		err := fmt.Errorf("%s that the labs need are not in %s, such as %s", cli.Count(len(absent), "module"), d.roomModules(), absent[0])
		return []doctor.Finding{stops(name, err, fix)}
	}
	return []doctor.Finding{good(name, "all that the go.mod files of the labs name are in %s", d.roomModules())}
}

// course looks at what learners will get.
func (d *roomDoctor) course(ctx context.Context) []doctor.Finding {
	const name = "course"
	packed, err := checkout.Pack(ctx, d.Root)
	if err != nil {
		return []doctor.Finding{stops(name, err, "serve the room from a git checkout")}
	}
	if packed.Changed {
		return []doctor.Finding{warns(name, fmt.Sprintf(
			"not all changes are committed; learners get commit %.12s without them", packed.Commit), "git commit")}
	}
	return []doctor.Finding{good(name, "learners get commit %.12s", packed.Commit)}
}

// port looks whether the room's server can listen where learners will look for it.
func (d *roomDoctor) port(ctx context.Context) []doctor.Finding {
	const name = "port"
	where, err := bindAddress(d.listen, d.room.Address)
	if err != nil {
		return []doctor.Finding{stops(name, err, "")}
	}
	var all []doctor.Finding
	if d.room.Address == "" {
		all = append(all, warns(name, "only this machine reaches the room; learners at other machines need an ADDRESS",
			"make doctor N=… ADDRESS="+d.anAddress()))
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", where)
	if err != nil {
		return append(all, warns(name, firstLine(err)+"; fine if that is make classroom-serve, which runs already", "PORT=7778"))
	}
	listener.Close()
	return append(all, good(name, "%s is free", where))
}

// grading says what graded code would run in.
func (d *roomDoctor) grading(ctx context.Context) []doctor.Finding {
	all, standard, err := d.runtimes(ctx)
	if err != nil || slices.Contains(all, gVisor) {
		return nil // what is wrong with the engine, others say
	}
	return []doctor.Finding{{
		Name: "graded code", OK: true, Severity: doctor.Tells, Fix: "install gVisor: docs/classroom.md#grading",
		Detail: fmt.Sprintf("runs in containers of %s, which share this machine's kernel; gVisor gives them one of their own", standard),
	}}
}

// anAddress is one of this machine that learners might reach, or an example.
func (d *roomDoctor) anAddress() string {
	all, _ := d.addresses()
	i := slices.IndexFunc(all, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast()
	})
	if i < 0 {
		return "192.168.1.5"
	}
	return netip.MustParsePrefix(all[i].String()).Addr().String()
}
