package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/classroom"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/desk"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/modules"
	"github.com/example/operator-lab/labs/internal/rehearsal"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// rehearsalPurpose marks the one cluster of a rehearsal, and is the id of the learner who gets it.
	rehearsalPurpose = "rehearsal"
	// laterLab is the one that is judged on a cluster like the learners': the first that has Pods.
	laterLab = 4
	// roomListen is where the room's server is rehearsed: the port of the guide.
	roomListen = "127.0.0.1:7777"
	// rehearsalEnds is how long what was made for a rehearsal may take to go away, after a Ctrl-C too.
	rehearsalEnds = 2 * time.Minute
)

// place is what a learner does at their desk.
type place interface {
	Judge(ctx context.Context, lab int, settings ...string) (*verdict.Result, error)
	Solve(ctx context.Context, lab int) error
	Kubeconfig() string
}

// rehearse is `lab classroom rehearse`. Its checks leave here what those after them need.
type rehearse struct {
	*roomCommand
	listen string // --listen

	examine func(context.Context) []doctor.Finding
	missing func(context.Context) ([]string, error) // programs of the embedded control plane
	packed  func(context.Context) (bool, error)     // whether learners' engines can have the node image
	sit     func(ctx context.Context, dir, archive, server string) (place, error)
	opens   func(ctx context.Context, kubeconfig string) error

	dir    string // everything that is written, gone afterwards
	course *course.Course
	room   *classroom.Room // as it will be
	before int             // how many are in it today
	asked  string          // the kind of cluster that the command line wants
	owned  *clusters.Owned
	image  nodeimage.Image
	needs  []modules.Need
	bind   string // where the server listens, as --listen takes it
	served *servedRoom
	made   *clusters.Cluster
	desk   place
	// answers are the learner's verdicts, by their runs.
	answers map[string]*verdict.Result
}

func newClassroomRehearseCommand(c *roomCommand) *cobra.Command {
	r := newRehearse(c)
	cmd := &cobra.Command{
		Use:   "rehearse",
		Short: "On the day before: try everything that a room needs, in about three minutes (make classroom-rehearse)",
		Long: `rehearse looks at the machine, whether the room fits, and what has to be on it; then it tries, for one learner who is
none: it makes a cluster, serves the room, writes a handout, unpacks it in an empty home, and does lab 1 and lab 4 there
as the handout says, until the verdicts are on the board. Each check ends in a line: ✓, ! for what should be looked at,
or ✗ for what would break the room, with the command that mends it. The exit code is 3 when there is a ✗.

Nothing of it is left behind. A room that is up already stays as it is.`,
		Args: noArguments("classroom rehearse"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.sized = cmd.Flags().Changed("learners")
			r.offer.given = cmd.Flags().Changed
			return r.run(cmd.Context())
		},
	}
	r.learnersFlags(cmd)
	r.offer.add(cmd)
	cmd.Flags().StringVar(&r.listen, "listen", roomListen,
		"where the room's server will listen; with --address only the port counts")
	return cmd
}

func newRehearse(c *roomCommand) *rehearse {
	return &rehearse{
		roomCommand: c, sit: sitDown, opens: openCluster, answers: map[string]*verdict.Result{},
		examine: func(ctx context.Context) []doctor.Finding { return doctor.Run(ctx, c.doctorOptions()) },
		missing: func(ctx context.Context) ([]string, error) {
			_, provider, err := c.ownedEmbedded()
			if err != nil {
				return nil, err
			}
			return provider.Missing(ctx)
		},
		packed: func(ctx context.Context) (bool, error) { return nodeimage.IsPacked(ctx, c.engine(), c.cache) },
	}
}

func (r *rehearse) run(ctx context.Context) (err error) {
	if err := r.understand(ctx); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "lab-rehearsal-"); err != nil {
		return exit.Environment(fmt.Errorf("rehearse: %w", err))
	}
	report, err := rehearsal.Play(ctx, r.checks(), func(f rehearsal.Finding) { fmt.Fprintln(r.out, f) }, r.progress)
	err = errors.Join(err, r.clean(ctx))
	if err != nil {
		return err
	}
	return r.conclude(report)
}

// understand reads the command line as `classroom up` would, and changes nothing.
func (r *rehearse) understand(ctx context.Context) (err error) {
	if r.room, err = classroom.Load(r.state); err != nil {
		return err
	}
	r.before = len(r.room.Learners)
	if _, _, err := r.admit(r.room); err != nil {
		return err
	}
	r.asked = r.cluster
	if err := r.settle(ctx, r.room); err != nil {
		return err
	}
	if err := r.decide(r.room, r.before); err != nil {
		return err
	}
	if _, err := bindAddress(r.listen, r.room.Address); err != nil {
		return err
	}
	r.course, err = r.app.course()
	return err
}

// checks are all, in the order in which they are asked: what is quick and says most comes first.
func (r *rehearse) checks() []rehearsal.Check {
	later := fmt.Sprintf("lab %d", r.later())
	return []rehearsal.Check{
		{Name: "machine", Doing: "looking at this machine", Ask: r.askMachine},
		{Name: "programs", Doing: "looking for the node image and other programs", After: []string{"machine"}, Ask: r.askPrograms},
		{Name: "room", After: []string{"programs"}, Ask: r.askRoom},
		{Name: "guide", Ask: r.askGuide},
		{Name: "course", Ask: r.askCourse},
		{Name: "modules", Doing: "looking for the Go modules of the labs", Ask: r.askModules},
		{Name: "port", Ask: r.askPort},
		{Name: "cluster", Doing: "making a cluster", After: []string{"room"}, Ask: r.askCluster},
		{Name: "server", Doing: "serving the room", After: []string{"course"}, Ask: r.askServer},
		{Name: "handout", Doing: "writing a handout, and unpacking it in an empty home", After: []string{"server", "cluster"}, Ask: r.askHandout},
		{Name: "download", Doing: "fetching modules into an empty cache, from the room alone", After: []string{"server", "modules"}, Ask: r.askDownload},
		{Name: "lab 1", Doing: "doing lab 1 as the handout says, which compiles the lab first", After: []string{"handout"}, Ask: r.askFirstLab},
		{Name: later, Doing: "doing " + later + " on a cluster like the learners'", After: []string{"lab 1"}, Ask: r.askLaterLab},
		{Name: "board", After: []string{"lab 1"}, Ask: r.askBoard},
	}
}

// later is the number of the lab that is judged on a cluster like the learners'.
func (r *rehearse) later() int { return min(laterLab, len(r.course.Labs)) }

// clean takes away what the rehearsal has made, and says what could not be taken away.
func (r *rehearse) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rehearsalEnds)
	defer cancel()
	var errs []error
	if r.served != nil {
		errs = append(errs, r.served.end())
	}
	if r.made != nil {
		r.progress("removing the cluster")
		errs = append(errs, r.owned.Delete(ctx, r.made.Name))
	}
	err := os.RemoveAll(r.dir)
	if err != nil {
		err = os.RemoveAll(r.dir) // the Go command may have written its statistics into the home just then
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("remove %s: %w", r.dir, err))
	}
	return exit.Environment(errors.Join(errs...))
}

// conclude sums up.
func (r *rehearse) conclude(report rehearsal.Report) error {
	took := report.Took.Round(time.Second)
	doubtful, wrong := report.Count(rehearsal.Doubtful), report.Count(rehearsal.Wrong)
	fmt.Fprintln(r.out)
	switch {
	case wrong > 0:
		fmt.Fprintf(r.out, "Not ready: %s (✗) would break the room. Mend from the top, and rehearse again. It took %s.\n",
			count(wrong, "fault"), took)
		return exit.Environment(exit.ErrTold)
	case doubtful > 0:
		fmt.Fprintf(r.out, "Ready, with %s to look at (!). It took %s. Then, on the day:\n\n", count(doubtful, "thing"), took)
	default:
		fmt.Fprintf(r.out, "Ready. It took %s. Then, on the day:\n\n", took)
	}
	r.tellTheDay()
	return nil
}

// tellTheDay prints the commands that were rehearsed.
func (r *rehearse) tellTheDay() {
	host, port := orLoopback(r.room.Address), ""
	if _, p, err := net.SplitHostPort(r.listen); err == nil {
		port = p
	}
	fmt.Fprintf(r.out, "  make classroom %s%s\n  make classroom-handouts SERVER=http://%s\n  make classroom-serve%s PORT=%s\n",
		r.settings(), r.address(), net.JoinHostPort(host, port), r.address(), port)
}

// settings are those of the room, without its address.
func (r *rehearse) settings() string {
	who, cluster := fmt.Sprintf("N=%d", len(r.room.Learners)), ""
	if r.roster != "" {
		who = "ROSTER=" + r.roster
	}
	if r.room.Provider == onEmbedded {
		cluster = " CLUSTER=" + onEmbedded
	}
	return who + cluster + r.offer.settings()
}

// address is the setting for the room's address, "" without one.
func (r *rehearse) address() string {
	if r.room.Address == "" {
		return ""
	}
	return " ADDRESS=" + r.room.Address
}

// onPort is the command that rehearses the same room with another port.
func (r *rehearse) onPort(port string) string {
	return "make classroom-rehearse " + r.settings() + r.address() + " PORT=" + port
}

// onAddress is the command that rehearses the same room on another address, which a room that is up cannot take.
func (r *rehearse) onAddress(address string) string {
	line := "make classroom-rehearse " + r.settings() + " ADDRESS=" + address
	if r.before > 0 {
		line = "make classroom-down, then " + line
	}
	return line
}

// sitDown gives a learner with that handout a desk, with the course from the room's server. What was compiled on this
// machine before is not compiled again, and programs of the embedded control plane are not built again.
func sitDown(ctx context.Context, dir, archive, server string) (place, error) {
	caches, err := desk.GoCaches(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	d, err := desk.Sit(dir, archive, slices.Concat(caches, desk.Engine(), []string{"LAB_CACHE=" + cache})...)
	if err != nil {
		return nil, err
	}
	return d, d.FetchCourse(ctx, server+coursePath)
}

// openCluster says whether a kubeconfig opens a cluster.
func openCluster(ctx context.Context, kubeconfig string) error {
	config, err := clusters.RESTConfig(kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = askTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil && len(nodes.Items) == 0 {
		err = errors.New("it has no nodes")
	}
	return err
}

// rehearsed is the folder in which the room of one learner keeps its state.
func (r *rehearse) rehearsed() string { return filepath.Join(r.dir, "state") }
