package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

// Learners' own clusters come first; what is lent beside them gives way.
func TestARoomLendsWhatFitsBesideTheLearnersClusters(t *testing.T) {
	s := newSchool(t)
	contains(t, s.must(t, "up", "--learners", "40"), "Beside them the room lends "+lends(&roster.Room{Lend: room.Limit()}))
	if r := s.room(t); r.Lend != room.Limit() || r.Ready != 1 {
		t.Errorf("it lends %d, and %d wait", r.Lend, r.Ready)
	}

	s = newSchool(t)
	s.must(t, "up", "--learners", "1")
	s.must(t, "up", "--learners", "12")
	if r := s.room(t); r.Lend != room.Limit() {
		t.Errorf("a room that grew lends %d, want one for each core", r.Lend)
	}

	s = newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 5 * 31}}
	contains(t, s.must(t, "up", "--learners", "3", "--lend", "1"), "3 of 3 clusters ready")
	// One of those that are lent runs, and is not counted again beside the others.
	clitest.Pretend(t, &s.App, "pool", false)
	s.must(t, "up")
	if r := s.room(t); r.Lend != 1 {
		t.Errorf("it lends %d, want the one that was asked for", r.Lend)
	}
	s.must(t, "up", "--learners", "5")
	contains(t, s.progress.String(), "room to lend 0 clusters at a time for verdicts, and not 1: not enough inotify instances")
	if r := s.room(t); r.Lend != 0 || len(r.Learners) != 5 {
		t.Errorf("it lends %d to %d", r.Lend, len(r.Learners))
	}

	s = newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 5 * 31}}
	err := s.command(t.Context(), "up", "--learners", "3", "--lend", "4")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("more than fits: %v", err)
	}
	contains(t, err.Error(), "room for 0 of 3 learners", "a smaller LEND takes less", "CLUSTER=embedded takes less", "FORCE=1")
	s.must(t, "up", "--learners", "3", "--lend", "4", "--force")
}

func TestARoomThatOnlyLendsHasNoOtherClusters(t *testing.T) {
	s := newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 3 * 31}}
	out := s.must(t, "up", "--learners", "12", "--playground=false", "--lend", "2")
	contains(t, out, "12 learners, and no clusters of their own: the room lends 2 clusters at a time", "make classroom-serve")
	if s.farm.made > 0 {
		t.Errorf("%d clusters were made", s.farm.made)
	}
	contains(t, s.must(t, "up"), "lends 2 clusters")
	contains(t, s.must(t, "status"), "learner-1, learner-2", "lends 2 clusters at a time")
	err := s.command(t.Context(), "up", "--lend", "3")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("more than fits: %v", err)
	}
	contains(t, err.Error(), "room for 3 of the 4 clusters that are lent or wait")
	s.must(t, "down")
	if r := s.room(t); len(r.Learners) > 0 || r.Lend > 0 {
		t.Errorf("the room is not forgotten: %+v", r)
	}
}

func TestWhatCannotBeLentIsRefused(t *testing.T) {
	s := newSchool(t)
	s.must(t, "up", "--learners", "1")
	s.refuses(t, map[string]string{
		"up --lend -1":          "LEND=-1",
		"up --lend 501":         "LEND=501",
		"up --ready 0":          "READY=0",
		"up --playground=false": "clusters of their own",
	})
	other := newSchool(t)
	err := other.command(t.Context(), "up", "--learners", "1", "--playground=false", "--lend", "0")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("a room with nothing: %v", err)
	}
	contains(t, err.Error(), "LEND=0")
}

// An embedded control plane cannot wait, and needs not.
func TestEmbeddedControlPlanesDoNotWait(t *testing.T) {
	s := newSchool(t)
	s.farm.Provider = "embedded"
	s.must(t, "up", "--learners", "1", "--cluster", "embedded", "--ready", "3")
	if r := s.room(t); r.Ready != 0 || r.Lend != 1 {
		t.Errorf("it lends %d, and %d wait", r.Lend, r.Ready)
	}
}

func TestHandoutsSayThatTheRoomLends(t *testing.T) {
	path := os.Getenv("PATH")
	s := newSchool(t)
	t.Setenv("PATH", path) // for git
	s.must(t, "up", "--learners", "1", "--playground=false")
	var err error
	if s.Root, err = filepath.Abs("../../../.."); err != nil {
		t.Fatal(err)
	}
	if err := handOut(t, s, "--server", "https://192.168.1.5:7777"); err != nil {
		t.Fatal(err)
	}
	if text := s.progress.String(); strings.Contains(text, "no cluster") || strings.Contains(text, "ADDRESS=") {
		t.Errorf("the instructor is told of clusters that nobody wants:\n%s", text)
	}
	dir := filepath.Join(s.State, handoutsDir, "learner-1")
	env, err := os.ReadFile(filepath.Join(dir, "env.sh"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(env), "export CLUSTER=room")
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a kubeconfig: %v", err)
	}
}

// serving is a room's server at work, in a room that lends one cluster.
type serving struct {
	*app
	progress *bytes.Buffer // to be read when it has ended
	url      string
	printed  string
	end      func() error // what Ctrl-C does
}

// serveRoom serves a room until it has printed a line with that text.
func serveRoom(t *testing.T, until string, prepare func(context.Context, *app, int) (*clusters.Owned, nodeimage.Image, error)) *serving {
	t.Helper()
	a, _, progress, _ := classroomApp(t)
	r := &roster.Room{Schema: 1, Provider: cli.Kind, Lend: 1, Ready: 1}
	r.Grow(2)
	if err := r.Save(a.State); err != nil {
		t.Fatal(err)
	}
	printed := synced{make(chan string, 30)}
	a.Out = printed
	a.Cluster = cli.Kind // the modules of the embedded control plane are not served here
	cmd := serveCommand(&board{app: a, prepare: prepare})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	s := &serving{app: a, progress: progress, end: func() error { stop(); return <-ended }}
	for !strings.Contains(s.printed, until) {
		select {
		case line := <-printed.lines:
			s.printed += line
		case err := <-ended:
			t.Fatalf("%v\n%s", err, progress)
		}
	}
	s.url = regexp.MustCompile(`https://127\.0\.0\.1:\d+`).FindString(s.printed)
	return s
}

// From the room's server to a learner's machine and back, and what is left when it ends.
func TestTheRoomsServerLendsAndTakesBack(t *testing.T) {
	f := &farm{Provider: clitest.Provider("kind/docker"), specs: map[string]clusters.Spec{}, broken: map[string]error{}}
	a := serveRoom(t, "The room lends 1 cluster at a time", func(_ context.Context, a *app, _ int) (*clusters.Owned, nodeimage.Image, error) {
		if a.Cluster != cli.Kind {
			t.Errorf("clusters of %s", a.Cluster)
		}
		f.state = a.State
		return clusters.NewOwned(a.State, f), nodeimage.Image{Ref: "node:v1"}, nil
	})
	token := &bytes.Buffer{}
	other := *a.app
	other.Out = token
	if err := cli.Execute(t.Context(), newRootCommand(&other), []string{"board", "token", "add", "learner-1"}); err != nil {
		t.Fatal(err)
	}
	learner, _, told := newTestApp(t)
	t.Setenv(roomclient.ConfigVariable, "")
	learner.Cluster = cli.Room
	config := roomclient.Config{URL: a.url, Key: keyOf(t, a.app), Token: strings.TrimSpace(token.String())}
	if err := roomclient.WriteConfig(learner.State, config); err != nil {
		t.Fatal(err)
	}
	owned := clusters.NewOwned(learner.State, borrow.New(learner.State, config, borrow.Options{Progress: learner.Progress}))
	lent := learner.StartPool(owned, clusters.Spec{}, 1)
	c, _, err := lent.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.specs) == 0 || c.Version != "v1.36.3" || strings.Contains(c.Kubeconfig, a.State) {
		t.Errorf("got %+v of %v", c, f.specs)
	}
	if left := clitest.Recorded(t, &learner.App); len(left) != 1 || left[0] != c.Name {
		t.Errorf("records on the learner's machine: %v", left)
	}

	if err := a.end(); err != nil { // while it is lent
		t.Errorf("after an interrupt: %v, %s", err, a.progress)
	}
	if !strings.Contains(a.progress.String(), "taking back 1 cluster that learners had borrowed") {
		t.Errorf("the instructor is told:\n%s", a.progress)
	}
	if left := clitest.Recorded(t, &a.App); len(f.specs) > 0 || len(left) > 0 {
		t.Errorf("left: %v, records %v", f.specs, left)
	}
	if _, err := owned.Provider().(clusters.NodeInspector).Nodes(t.Context(), c.Name); err == nil || !strings.Contains(err.Error(), "took the cluster back") {
		t.Errorf("the learner is told %v", err)
	}
	lent.Discard(c.Name)
	if err := lent.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(told.String(), "takes it back by itself") {
		t.Errorf("the learner is told %s", told)
	}
}

// A room can be opened to a network when its server starts, too.
func TestKindClustersAreLentOverANetworkOnlyAfterAYes(t *testing.T) {
	a, _, _ := newTestApp(t)
	a.Yes = false
	r := &roster.Room{Schema: 1, Provider: cli.Kind, Lend: 1, Ready: 1}
	r.Grow(1)
	if err := r.Save(a.State); err != nil {
		t.Fatal(err)
	}
	none := errors.New("no clusters here")
	b := &board{app: a, addr: "127.0.0.2", prepare: func(context.Context, *app, int) (*clusters.Owned, nodeimage.Image, error) {
		return nil, nodeimage.Image{}, none
	}}
	if _, err := b.openLender(t.Context()); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "root on this machine") {
		t.Errorf("nobody was asked: %v", err)
	}
	a.Yes = true
	if _, err := b.openLender(t.Context()); err != nil {
		t.Errorf("after a yes: %v", err)
	}
	if r, err := roster.Load(a.State); err != nil || !slices.Equal(r.OpenOn, []string{"127.0.0.2"}) {
		t.Errorf("the room does not know that it is open: %+v, %v", r, err)
	}
	a.Yes = false
	if _, err := b.openLender(t.Context()); err != nil {
		t.Errorf("asked again: %v", err)
	}
	b.addr = "127.0.0.3"
	if _, err := b.openLender(t.Context()); exit.Code(err) != exit.UsageError {
		t.Errorf("nobody was asked about another address: %v", err)
	}
}

func TestARoomThatCannotLendStillServes(t *testing.T) {
	a := serveRoom(t, "GOTOOLCHAIN=", func(context.Context, *app, int) (*clusters.Owned, nodeimage.Image, error) {
		return nil, nodeimage.Image{}, &clusters.Problem{What: "docker does not answer", Fix: "make setup"}
	})
	config := roomclient.Config{Key: keyOf(t, a.app)}
	resp, err := config.Client().Get(a.url + "/course.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the course: %d", resp.StatusCode)
	}
	if err := a.end(); err != nil {
		t.Error(err)
	}
	contains(t, a.progress.String(), "this room lends no clusters now: docker does not answer (fix: make setup)")
	if strings.Contains(a.printed, "CLUSTER=room") {
		t.Errorf("it says that it lends:\n%s", a.printed)
	}
}
