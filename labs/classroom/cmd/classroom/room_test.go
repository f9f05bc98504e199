package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// farm is a provider in memory that writes kubeconfigs.
type farm struct {
	clitest.Provider
	state string

	mu      sync.Mutex
	specs   map[string]clusters.Spec // of the clusters that are there
	made    int
	broken  map[string]error
	barren  error              // why nothing can be made
	harvest context.CancelFunc // ends the command after plenty
	plenty  int
}

func (f *farm) Create(ctx context.Context, name string, spec clusters.Spec) (*clusters.Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(ctx.Err(), f.barren); err != nil {
		return nil, err
	}
	f.made++
	f.specs[name] = spec
	path := clusters.Kubeconfig(f.state, name)
	host := spec.APIServerAddress
	if host == "" {
		host = "127.0.0.1"
	}
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: x, cluster: {server: "https://%s:%d"}}],
contexts: [{name: x, context: {cluster: x, user: x}}], users: [{name: x, user: {}}]}`, host, 6000+f.made)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if f.harvest != nil && f.made > f.plenty {
		f.harvest()
		delete(f.specs, name)
		return nil, ctx.Err()
	}
	return &clusters.Cluster{Name: name, Version: "v1.36.3", Kubeconfig: path, Nodes: 1}, nil
}

func (f *farm) Delete(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.specs, name)
	return nil
}

func (f *farm) List(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.specs {
		names = append(names, name)
	}
	return names, nil
}

func (f *farm) health(_ context.Context, _ clusters.Provider, c *clusters.Cluster) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.specs[c.Name]; !ok {
		return &clusters.Problem{What: "cluster " + c.Name + " has 0 of its 1 nodes left", Fix: clusters.FixCluster}
	}
	return f.broken[c.Name]
}

// Nodes are those of the clusters that are there.
func (f *farm) Nodes(_ context.Context, name string) ([]clusters.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.specs[name]; !ok {
		return nil, nil
	}
	return []clusters.Node{{Name: name, Running: true}}, nil
}

// school is a checkout with room for everybody.
type school struct {
	*app
	farm          *farm
	supplies      map[doctor.Resource]doctor.Supply
	out, progress *bytes.Buffer
	terminal      bool
	sideBySide    int    // how many clusters the last command that prepares asked the kernel for
	meanwhile     func() // is called while it prepares
}

func newSchool(t *testing.T) *school {
	t.Helper()
	t.Setenv("CI", "") // which says yes to everything
	a, out, progress := newTestApp(t)
	return &school{
		app: a, out: out, progress: progress,
		farm: &farm{
			Provider: clitest.Provider("kind/docker"), state: a.State,
			specs: map[string]clusters.Spec{}, broken: map[string]error{},
		},
	}
}

// command runs one as the command line would.
func (s *school) command(ctx context.Context, args ...string) error {
	s.out.Reset()
	s.progress.Reset()
	again := *s.app // each command begins with its own flags
	c := newRoom(&again)
	c.Cluster = cli.Auto
	owned := func() (*clusters.Owned, error) { return clusters.NewOwned(c.State, s.farm), nil }
	c.open = owned
	c.prepare = func(_ context.Context, n int) (*clusters.Owned, nodeimage.Image, error) {
		s.sideBySide = n
		if s.meanwhile != nil {
			s.meanwhile()
		}
		o, err := owned()
		return o, nodeimage.Image{Ref: "node:v1", Local: true}, err
	}
	c.supplies = func(context.Context, nodeimage.Image) map[doctor.Resource]doctor.Supply { return s.supplies }
	c.healthy = s.farm.health
	c.terminal = func() bool { return s.terminal }
	c.addresses = func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.IPv4(127, 0, 0, 1), Mask: net.CIDRMask(8, 32)},
			&net.IPNet{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
			&net.IPNet{IP: net.IPv4(192, 168, 1, 5), Mask: net.CIDRMask(24, 32)},
		}, nil
	}
	root := newRootCommand(&again)
	for _, own := range newRoomCommands(c) {
		old, _, err := root.Find([]string{own.Name()})
		if err != nil {
			return err
		}
		root.RemoveCommand(old)
		root.AddCommand(own)
	}
	return cli.Execute(ctx, root, args)
}

// must runs a command that has to work.
func (s *school) must(t *testing.T, args ...string) (out string) {
	t.Helper()
	if err := s.command(t.Context(), args...); err != nil {
		t.Fatalf("classroom %v: %v\n%s%s", args, err, s.progress, s.out)
	}
	return s.out.String()
}

// refuses wants each command line to be wrong usage, said in one line that has the text.
func (s *school) refuses(t *testing.T, lines map[string]string) {
	t.Helper()
	for line, why := range lines {
		err := s.command(t.Context(), strings.Fields(line)...)
		if exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
			t.Fatalf("classroom %s: %v", line, err)
		}
		contains(t, err.Error(), why)
	}
}

func (s *school) room(t *testing.T) *roster.Room {
	t.Helper()
	r, err := roster.Load(s.State)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *school) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(s.Root, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestAClusterForEveryLearner(t *testing.T) {
	s := newSchool(t)
	out := s.must(t, "up", "--learners", "3")
	contains(t, out, "3 of 3 clusters ready (3 new)", "make classroom-status", "make classroom-down",
		"learner-1/kubeconfig")
	contains(t, s.progress.String(), "3 learners in the room", "learner-2: starting a cluster", "learner-3: ready [")
	r := s.room(t)
	if len(r.Learners) != 3 || r.Provider != cli.Kind || len(s.farm.specs) != 3 {
		t.Fatalf("%+v, clusters %v", r, s.farm.specs)
	}
	for _, l := range r.Learners {
		if spec := s.farm.specs[l.Cluster]; spec.NodeImage != "node:v1" || spec.APIServerAddress != "" || !spec.ForOthers {
			t.Errorf("%s: %+v", l.Name, spec)
		}
		data, err := os.ReadFile(l.Kubeconfig(s.State))
		if err != nil {
			t.Error(err)
		}
		contains(t, string(data), "https://127.0.0.1:")
	}
	if swept, err := clusters.NewOwned(s.State, s.farm).Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("the next command removes %v, %v", swept, err)
	}
}

func TestUpAgainAddsAndLeavesTheOthersAlone(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "2")
	before := s.room(t).Learners
	contains(t, s.must(t, "up", "--learners", "3"), "3 of 3 clusters ready (1 new, 2 left alone)")
	if s.farm.made != 3 || !slices.Equal(s.room(t).Learners[:2], before) {
		t.Errorf("%d made, %v was %v", s.farm.made, s.room(t).Learners, before)
	}
	contains(t, s.must(t, "up"), "3 of 3 clusters ready (3 left alone)")
	s.must(t, "up", "--learners", "1")
	contains(t, s.progress.String(), "N=1, and 3 learners in the room: all of them stay", "make classroom-down")
	if len(s.room(t).Learners) != 3 || s.farm.made != 3 {
		t.Errorf("%v, %d made", s.room(t).Learners, s.farm.made)
	}
}

func TestTheRosterNamesTheRoom(t *testing.T) {
	s := newSchool(t)
	first := s.write(t, "roster.csv", "name,mail\nAda Lovelace,ada@example.com\nZoë,z@example.com\n")
	s.must(t, "up", "--roster", first)
	contains(t, s.progress.String(), "Ada Lovelace: ready", "Zoë: ready")
	s.must(t, "up", "--roster", s.write(t, "roster.csv", "Grace\nZoë\n"))
	contains(t, s.progress.String(), "3 learners in the room, 1 of them new",
		"not on the roster, and they stay: Ada Lovelace;")
	contains(t, s.must(t, "status"), "Ada Lovelace", "Zoë", "Grace")
}

// What the kernel grants, it forgets with every boot; so it is asked each time, for what learners' own clusters need.
func TestTheKernelIsAskedForWhatARoomNeeds(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"up", "--learners", "5"}, 5},
		{[]string{"up", "--learners", "5", "--force"}, 1},
		{[]string{"up", "--learners", "5", "--playground=false"}, 1},
	} {
		s := newSchool(t)
		if s.must(t, c.args...); s.sideBySide != c.want {
			t.Errorf("%v: the kernel was asked for %d clusters, want %d", c.args, s.sideBySide, c.want)
		}
	}
}

func TestABrokenClusterIsFixedAndWhatIsLostIsSaid(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "2")
	lost := s.room(t).Learners[0]
	delete(s.farm.specs, lost.Cluster)
	contains(t, s.must(t, "status"),
		"stopped (cluster "+lost.Cluster+" has 0 of its 1 nodes left): make classroom fixes it")
	contains(t, s.must(t, "up"), "2 of 2 clusters ready (1 made anew, with nothing in it, 1 left alone)")
	contains(t, s.progress.String(), "learner-1: ready, a new cluster with a new key; what was in the old one is lost",
		"learner-2: ready, and left alone")
	if s.room(t).Learners[0] != lost {
		t.Errorf("%v was %v", s.room(t).Learners[0], lost)
	}
}

func TestOneThatFailsIsReportedAndTheOthersAreReady(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "1")
	s.farm.barren = &clusters.Problem{What: "no space\non the disk", Fix: "make doctor"}
	err := s.command(t.Context(), "up", "--learners", "2")
	if exit.Code(err) != exit.EnvironmentError || !errors.Is(err, exit.ErrTold) {
		t.Errorf("classroom up: %v", err)
	}
	contains(t, s.out.String(), "1 of 2 clusters ready (1 left alone)", "  learner-2: no space\n",
		"make classroom tries these again")
	contains(t, s.progress.String(), "learner-2: no luck yet")
	contains(t, s.must(t, "status"), "missing: make classroom makes it")
	s.farm.barren = nil
	contains(t, s.must(t, "up"), "2 of 2 clusters ready (1 new, 1 left alone)")
}

func TestAnInterruptLeavesWhatIsReady(t *testing.T) {
	s := newSchool(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first after as many as begin at once begins when one of those is ready.
	s.farm.harvest, s.farm.plenty = cancel, room.Limit()
	all := room.Limit() + 3
	err := s.command(ctx, "up", "--learners", strconv.Itoa(all))
	if exit.Code(err) != exit.Interrupted || !errors.Is(err, exit.ErrTold) {
		t.Errorf("classroom up: %v", err)
	}
	ready := len(clitest.Recorded(t, &s.App))
	contains(t, s.progress.String(), fmt.Sprintf("stopped: %d of %d clusters ready, and stay", ready, all))
	if ready < 1 || ready > s.farm.plenty || len(s.farm.specs) != ready {
		t.Errorf("%d are recorded, and there are %v", ready, s.farm.specs)
	}
	s.farm.harvest = nil
	contains(t, s.must(t, "up"),
		fmt.Sprintf("%d of %d clusters ready (%d new, %d left alone)", all, all, all-ready, ready))
}

func TestARoomThatDoesNotFitIsRefusedBeforeAnythingStarts(t *testing.T) {
	s := newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{
		doctor.Memory: {Amount: 4 << 30}, doctor.Inotify: {Amount: 128, Fix: "make setup"},
	}
	err := s.command(t.Context(), "up", "--learners", "12")
	if exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
		t.Fatalf("classroom up: %v", err)
	}
	contains(t, err.Error(), "room for 4 of 12 learners", "inotify instances (128, 31 for each)", "make setup",
		"N=4 fits", "CLUSTER=embedded", "FORCE=1")
	if s.farm.made > 0 || len(s.room(t).Learners) > 0 {
		t.Errorf("%d made, %+v", s.farm.made, s.room(t))
	}
	s.must(t, "up", "--learners", "4")
	// What runs is not counted again: the memory that is left is what two more want.
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Memory: {Amount: 2 << 30}}
	s.must(t, "up", "--learners", "6")
	// Who is there is not told to be fewer, or to be something else.
	err = s.command(t.Context(), "up", "--learners", "12")
	contains(t, err.Error(), "room for 8 of 12 learners", "N=8 fits, make classroom-down ends the room, FORCE=1")
	clear(s.farm.specs) // the machine was restarted, and has less than before
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.BridgePorts: {Amount: 27}}
	err = s.command(t.Context(), "up")
	contains(t, err.Error(), "room for 3 of 6 learners", "for each); make classroom-down ends the room, FORCE=1")
	s.supplies = nil
	s.must(t, "up")
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Memory: {Amount: 2 << 30}}
	contains(t, s.must(t, "up", "--learners", "12", "--force"), "12 of 12 clusters ready")
	contains(t, s.progress.String(), "room for 8 of 12 learners", "going on all the same")
}

// Inotify instances are counted for all clusters on the engine, and for each of them once.
func TestClustersBesideTheRoomAreCounted(t *testing.T) {
	s := newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 8 * 31}}
	s.must(t, "up", "--learners", "6")
	s.farm.specs["somebody-elses"] = clusters.Spec{}
	err := s.command(t.Context(), "up", "--learners", "8")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("classroom up: %v", err)
	}
	contains(t, err.Error(), "room for 7 of 8 learners")
	delete(s.farm.specs, "somebody-elses")
	s.must(t, "up", "--learners", "8")
}

// On a node image that is not ours, each node copies 0.7 GB.
func TestTheNodeImageDecidesAboutTheDisk(t *testing.T) {
	c := newRoom(newSchool(t).app)
	c.Cluster = cli.Kind
	for image, want := range map[nodeimage.Image]uint64{
		{Local: true}: 150 << 20, {Local: true, Stale: true}: 700 << 20, {}: 700 << 20,
	} {
		if got := c.cost(image)[doctor.Disk]; got != want {
			t.Errorf("%+v: %d, want %d", image, got, want)
		}
	}
	if c.Cluster = cli.Embedded; c.cost(nodeimage.Image{})[doctor.BridgePorts] != 0 {
		t.Error("an embedded control plane takes a port of a bridge")
	}
}

func TestAnAddressOfThisMachineIsUsedAndWarnedOf(t *testing.T) {
	s := newSchool(t)
	s.farm.Provider = "embedded"
	s.must(t, "up", "--learners", "1", "--address", "192.168.1.5")
	contains(t, s.progress.String(), "Warning: everybody on the network of 192.168.1.5")
	contains(t, s.must(t, "status"), "https://192.168.1.5:")
	// Who comes later has it, too, and somebody is warned again.
	s.must(t, "up", "--learners", "2")
	contains(t, s.progress.String(), "Warning: everybody on the network of 192.168.1.5")
	for name, spec := range s.farm.specs {
		if spec.APIServerAddress != "192.168.1.5" {
			t.Errorf("%s: %+v", name, spec)
		}
	}
	other := newSchool(t)
	other.must(t, "up", "--learners", "1", "--address", "127.0.0.1")
	if strings.Contains(other.progress.String(), "Warning") || other.room(t).Address != "" {
		t.Errorf("on loopback: %s", other.progress)
	}
}

// A kubeconfig of a kind cluster is a key to the machine, so a room that is open to a network has none unless somebody
// wants it.
func TestARoomThatIsOpenToANetworkHasNoKindClustersUnlessAsked(t *testing.T) {
	s := newSchool(t)
	s.farm.Provider = "embedded"
	s.must(t, "up", "--learners", "1", "--address", "192.168.1.5")
	contains(t, s.progress.String(), "embedded control planes", "CLUSTER=kind")
	if r := s.room(t); r.Provider != cli.Embedded || len(r.OpenOn) > 0 {
		t.Errorf("%+v", r)
	}
	if err := s.refuseToGrade(); err != nil {
		t.Errorf("grading beside embedded clusters: %v", err)
	}

	s = newSchool(t)
	line := []string{"up", "--learners", "1", "--address", "192.168.1.5", "--cluster", "kind"}
	t.Setenv("CI", "true") // is no yes to this
	err := s.command(t.Context(), line...)
	if exit.Code(err) != exit.UsageError || s.farm.made > 0 || len(s.room(t).Learners) > 0 {
		t.Fatalf("nobody was asked: %v, %+v", err, s.room(t))
	}
	contains(t, err.Error(), "root on this machine", "YES=1", "CLUSTER=embedded")
	grading, err := s.lockGrading()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command(t.Context(), append(line, "--yes")...); exit.Code(err) != exit.UsageError || s.farm.made > 0 {
		t.Errorf("while strangers are graded: %v", err)
	}
	grading()
	s.Yes, s.terminal = false, true
	for answer, ok := range map[string]bool{"no\n": false, "": false} {
		s.In = strings.NewReader(answer)
		if err := s.command(t.Context(), line...); (err == nil) != ok || s.farm.made > 0 {
			t.Fatalf("the answer %q: %v", answer, err)
		}
	}
	s.In = strings.NewReader("yes\n")
	s.meanwhile = func() {
		if err := s.refuseToGrade(); exit.Code(err) != exit.UsageError {
			t.Errorf("grading while the clusters are prepared: %v", err)
		}
	}
	s.must(t, line...)
	s.In = strings.NewReader("")
	s.must(t, "up", "--learners", "2") // is not asked again
	if got := s.room(t).OpenOn; !slices.Equal(got, []string{"192.168.1.5"}) {
		t.Errorf("the room knows that it is open on %v", got)
	}
	if err := s.refuseToGrade(); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("grading on a machine on which learners are root: %v", err)
	}
	s.In = strings.NewReader("yes\n")
	s.must(t, "down")
	if err := s.refuseToGrade(); err != nil {
		t.Errorf("after the end of the room: %v", err)
	}
}

func TestClassroomRefusesWhatItDoesNotUnderstand(t *testing.T) {
	s := newSchool(t)
	roster := s.write(t, "roster.csv", "Ada\nada\n")
	s.refuses(t, map[string]string{
		"":                                       "classroom --help",
		"up":                                     "N=12",
		"up now":                                 "no arguments",
		"up --learners 0":                        "1 to 500",
		"up --learners -1":                       "1 to 500",
		"up --learners 501":                      "1 to 500",
		"up --roster /nowhere":                   "/nowhere",
		"up --roster " + roster:                  "line 2",
		"up --learners 2 --roster " + roster:     "leave one of them out",
		"up --learners 1 --address 192.168.1.6":  "192.168.1.5",
		"up --learners 1 --address 0.0.0.0":      "ADDRESS=",
		"up --learners 1 --address some.host":    "ADDRESS=",
		"up --learners 1 --address ::1":          "ADDRESS=",
		"up --learners 1 --address 192.168.1.05": "ADDRESS=",
		"status of it":                           "no arguments",
		"down it":                                "no arguments",
	})
	if s.farm.made > 0 || len(s.room(t).Learners) > 0 {
		t.Errorf("%d made, %+v", s.farm.made, s.room(t))
	}
}

// The clusters of one room are alike.
func TestARoomKeepsItsProviderAndItsAddress(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "1")
	for line, why := range map[string]string{
		"up --cluster embedded":    "are kind",
		"up --address 192.168.1.5": "answer on 127.0.0.1",
	} {
		err := s.command(t.Context(), strings.Fields(line)...)
		if exit.Code(err) != exit.UsageError {
			t.Fatalf("classroom %s: %v", line, err)
		}
		contains(t, err.Error(), why, "make classroom-down")
	}
	s.must(t, "up", "--cluster", "kind", "--address", "127.0.0.1")
	e := newSchool(t)
	e.farm.Provider = "embedded"
	e.must(t, "up", "--learners", "1", "--cluster", "embedded")
	if e.room(t).Provider != cli.Embedded {
		t.Errorf("%+v", e.room(t))
	}
	e.must(t, "up") // without an engine, and without being told again
	e.must(t, "down")
	if len(e.farm.specs) > 0 {
		t.Errorf("left: %v", e.farm.specs)
	}
}

func TestStatusIsATableOfTheRoom(t *testing.T) {
	s := newSchool(t)
	contains(t, s.must(t, "status"), "Nobody is in the room", "make classroom N=12")
	s.must(t, "up", "--learners", "3")
	l := s.room(t).Learners
	s.farm.broken[l[1].Cluster] = &clusters.Problem{What: "the API server is not ready", Fix: "make down"}
	lines := strings.Split(s.must(t, "status"), "\n")
	for i, want := range [][]string{
		{"LEARNER", "CLUSTER", "STATE", "API SERVER"},
		{"learner-1", l[0].Cluster, "ready, Kubernetes v1.36.3", "https://127.0.0.1:60"},
		{"learner-2", l[1].Cluster, "broken (the API server is not ready): make classroom fixes it", "https://127.0.0.1:60"},
		{"learner-3", l[2].Cluster, "ready"},
	} {
		contains(t, lines[i], want...)
	}
	if strings.Contains(strings.Join(lines, ""), "make down") {
		t.Errorf("status sends somebody to make down, which leaves the room as it is:\n%s", strings.Join(lines, "\n"))
	}
}

func TestDownLeavesNothingOfTheRoomAndAllOfTheRest(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "2")
	playground := clitest.Pretend(t, &s.App, "up", true)
	contains(t, s.must(t, "down"), "Removed 2 clusters")
	if len(s.farm.specs) > 0 || !slices.Equal(clitest.Recorded(t, &s.App), []string{playground.Name}) {
		t.Errorf("clusters left: %v, records left: %v", s.farm.specs, clitest.Recorded(t, &s.App))
	}
	if _, err := os.Stat(roster.Dir(s.State)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the room's folder: %v", err)
	}
	contains(t, s.must(t, "down"), "No cluster of a room")
}

// A borrower of a kind cluster was root on the machine, and the cluster of a server that was killed still answers.
func TestDownRemovesWhatAServerLeft(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "2", "--playground=false")
	owned := clusters.NewOwned(s.State, s.farm)
	for _, ended := range []bool{true, false} {
		lent, err := owned.Create(t.Context(), pool.Purpose, clusters.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			nobodys(t, filepath.Join(clusters.Dir(s.State, lent.Name), "owner.json"))
		}
	}
	borrowed := clitest.Pretend(t, &s.App, pool.Purpose, false) // by a check in this checkout, of another room
	record := filepath.Join(clusters.Dir(s.State, borrowed.Name), "owner.json")
	nobodys(t, record, "provider", "room/192.168.1.5:7777")
	contains(t, s.must(t, "down"), "Removed 1 cluster.")
	if len(s.farm.specs) != 1 {
		t.Errorf("clusters left: %v, want that of the living process", s.farm.specs)
	}
	if _, err := os.Stat(record); err != nil {
		t.Errorf("the record of the borrowed cluster: %v", err)
	}
}

// What a watch or a grade has left is nobody's room, and a board without one keeps its tokens.
func TestDownWithoutARoomRemovesNothing(t *testing.T) {
	s := newSchool(t)
	left := clitest.Pretend(t, &s.App, pool.Purpose, false)
	nobodys(t, filepath.Join(clusters.Dir(s.State, left.Name), "owner.json"))
	contains(t, s.must(t, "down"), "No cluster of a room")
}

// nobodys makes the record of a cluster that of a process that has ended, and may change a field of it.
func nobodys(t *testing.T, path string, field ...string) {
	t.Helper()
	record := map[string]any{}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), "lock")); err != nil { // that its process holds
		t.Fatal(err)
	}
	if len(field) > 0 {
		record[field[0]] = field[1]
	}
	if data, err = json.Marshal(record); err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDownAsksWhoeverSitsThere(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "2")
	s.terminal = true
	for _, answer := range []string{"n\n", "\n", ""} {
		s.In = strings.NewReader(answer)
		if err := s.command(t.Context(), "down"); exit.Code(err) != exit.UsageError || len(s.farm.specs) != 2 {
			t.Fatalf("after %q: %v, clusters %v", answer, err, s.farm.specs)
		}
		contains(t, s.progress.String(), "This removes 2 clusters, and all that the learners have in there. Go on? [y/N]")
	}
	s.In = strings.NewReader("y\n")
	s.must(t, "down")
	s.must(t, "up", "--learners", "1")
	s.In = strings.NewReader("")
	s.must(t, "down", "--yes")
	if len(s.farm.specs) > 0 {
		t.Errorf("left: %v", s.farm.specs)
	}
}

func TestOneClassroomCommandAtATime(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "1")
	unlock, err := s.lockRoom()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"up", "down"} {
		if err := s.command(t.Context(), command); exit.Code(err) != exit.UsageError || !errors.Is(err, cli.ErrBusy) {
			t.Errorf("classroom %s beside another one: %v", command, err)
		}
	}
	s.must(t, "status") // only looks
	unlock()
	s.must(t, "up")
}
