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
	"strconv"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/internal/outbox"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
)

// Learners' own clusters come first; what is lent beside them gives way.
func TestARoomLendsWhatFitsBesideTheLearnersClusters(t *testing.T) {
	s := newSchool(t)
	contains(t, s.mustLab(t, "up", "--learners", "40"), "Beside them the room lends "+lends(&roster.Room{Lend: room.Limit()}))
	if r := s.room(t); r.Lend != room.Limit() || r.Ready != 1 {
		t.Errorf("it lends %d, and %d wait", r.Lend, r.Ready)
	}

	s = newSchool(t)
	s.mustLab(t, "up", "--learners", "1")
	s.mustLab(t, "up", "--learners", "12")
	if r := s.room(t); r.Lend != room.Limit() {
		t.Errorf("a room that grew lends %d, want one for each core", r.Lend)
	}

	s = newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 5 * 31}}
	contains(t, s.mustLab(t, "up", "--learners", "3", "--lend", "1"), "3 of 3 clusters ready")
	// One of those that are lent runs, and is not counted again beside the others.
	pretend(t, s.app, "pool", false)
	s.mustLab(t, "up")
	if r := s.room(t); r.Lend != 1 {
		t.Errorf("it lends %d, want the one that was asked for", r.Lend)
	}
	s.mustLab(t, "up", "--learners", "5")
	contains(t, s.progress.String(), "room to lend 0 clusters at a time for verdicts, and not 1: not enough inotify instances")
	if r := s.room(t); r.Lend != 0 || len(r.Learners) != 5 {
		t.Errorf("it lends %d to %d", r.Lend, len(r.Learners))
	}

	s = newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 5 * 31}}
	err := s.lab(t.Context(), "up", "--learners", "3", "--lend", "4")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("more than fits: %v", err)
	}
	contains(t, err.Error(), "room for 0 of 3 learners", "a smaller LEND takes less", "CLUSTER=embedded takes less", "FORCE=1")
	s.mustLab(t, "up", "--learners", "3", "--lend", "4", "--force")
}

func TestARoomThatOnlyLendsHasNoOtherClusters(t *testing.T) {
	s := newSchool(t)
	s.supplies = map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 3 * 31}}
	out := s.mustLab(t, "up", "--learners", "12", "--playground=false", "--lend", "2")
	contains(t, out, "12 learners, and no clusters of their own: the room lends 2 clusters at a time", "make classroom-serve")
	if s.farm.made > 0 {
		t.Errorf("%d clusters were made", s.farm.made)
	}
	contains(t, s.mustLab(t, "up"), "lends 2 clusters")
	contains(t, s.mustLab(t, "status"), "learner-1, learner-2", "lends 2 clusters at a time")
	err := s.lab(t.Context(), "up", "--lend", "3")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("more than fits: %v", err)
	}
	contains(t, err.Error(), "room for 3 of the 4 clusters that are lent or wait")
	if err := s.down(t.Context(), false); err != nil || len(s.room(t).Learners) != 12 {
		t.Errorf("lab down: %v, and %d learners are known", err, len(s.room(t).Learners))
	}
	s.mustLab(t, "down")
	if r := s.room(t); len(r.Learners) > 0 || r.Lend > 0 {
		t.Errorf("the room is not forgotten: %+v", r)
	}
}

func TestWhatCannotBeLentIsRefused(t *testing.T) {
	s := newSchool(t)
	s.mustLab(t, "up", "--learners", "1")
	for line, why := range map[string]string{
		"up --lend -1":          "LEND=-1",
		"up --lend 501":         "LEND=501",
		"up --ready 0":          "READY=0",
		"up --playground=false": "clusters of their own",
	} {
		err := s.lab(t.Context(), strings.Fields(line)...)
		if exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
			t.Fatalf("lab classroom %s: %v", line, err)
		}
		contains(t, err.Error(), why)
	}
	other := newSchool(t)
	err := other.lab(t.Context(), "up", "--learners", "1", "--playground=false", "--lend", "0")
	if exit.Code(err) != exit.UsageError {
		t.Fatalf("a room with nothing: %v", err)
	}
	contains(t, err.Error(), "LEND=0")
}

// An embedded control plane cannot wait, and needs not.
func TestEmbeddedControlPlanesDoNotWait(t *testing.T) {
	s := newSchool(t)
	s.farm.identity = "embedded"
	s.mustLab(t, "up", "--learners", "1", "--cluster", "embedded", "--ready", "3")
	if r := s.room(t); r.Ready != 0 || r.Lend != 1 {
		t.Errorf("it lends %d, and %d wait", r.Lend, r.Ready)
	}
}

func TestHandoutsSayThatTheRoomLends(t *testing.T) {
	path := os.Getenv("PATH")
	s := newSchool(t)
	t.Setenv("PATH", path) // for git
	s.mustLab(t, "up", "--learners", "1", "--playground=false")
	var err error
	if s.root, err = filepath.Abs("../../.."); err != nil {
		t.Fatal(err)
	}
	if err := handOut(t, s, "--server", "http://192.168.1.5:7777"); err != nil {
		t.Fatal(err)
	}
	if text := s.progress.String(); strings.Contains(text, "no cluster") || strings.Contains(text, "ADDRESS=") {
		t.Errorf("the instructor is told of clusters that nobody wants:\n%s", text)
	}
	dir := filepath.Join(s.state, handoutsDir, "learner-1")
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
	r := &roster.Room{Schema: 1, Provider: onKind, Lend: 1, Ready: 1}
	r.Grow(2)
	if err := r.Save(a.state); err != nil {
		t.Fatal(err)
	}
	printed := synced{make(chan string, 30)}
	a.out = printed
	a.cluster = onKind // the modules of the embedded control plane are not served here
	cmd := newServeCommand(&board{app: a, prepare: prepare})
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
	s.url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(s.printed)
	return s
}

// From the room's server to a learner's machine and back, and what is left when it ends.
func TestTheRoomsServerLendsAndTakesBack(t *testing.T) {
	f := &farm{standIn: standIn{"kind/docker"}, specs: map[string]clusters.Spec{}, broken: map[string]error{}}
	a := serveRoom(t, "The room lends 1 cluster at a time", func(_ context.Context, a *app, _ int) (*clusters.Owned, nodeimage.Image, error) {
		if a.cluster != onKind {
			t.Errorf("clusters of %s", a.cluster)
		}
		f.state = a.state
		return clusters.NewOwned(a.state, f), nodeimage.Image{Ref: "node:v1"}, nil
	})
	token := &bytes.Buffer{}
	other := *a.app
	other.out = token
	if err := execute(t.Context(), &other, []string{"board", "token", "add", "learner-1"}); err != nil {
		t.Fatal(err)
	}
	learner, _, told := newTestApp(t)
	t.Setenv(outbox.ConfigVariable, "")
	learner.cluster = onRoom
	config := outbox.Config{URL: a.url, Token: strings.TrimSpace(token.String())}
	if err := outbox.WriteConfig(learner.state, config); err != nil {
		t.Fatal(err)
	}
	owned, image, err := learner.readyToJudge(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	lent := learner.startPool(owned, image, 1)
	c, _, err := lent.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.specs) == 0 || c.Version != "v1.36.3" || strings.Contains(c.Kubeconfig, a.state) {
		t.Errorf("got %+v of %v", c, f.specs)
	}
	if left := recorded(t, learner); len(left) != 1 || left[0] != c.Name {
		t.Errorf("records on the learner's machine: %v", left)
	}

	if err := a.end(); err != nil { // while it is lent
		t.Errorf("after an interrupt: %v, %s", err, a.progress)
	}
	if !strings.Contains(a.progress.String(), "taking back 1 cluster that learners had borrowed") {
		t.Errorf("the instructor is told:\n%s", a.progress)
	}
	if left := recorded(t, a.app); len(f.specs) > 0 || len(left) > 0 {
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

func TestARoomThatCannotLendStillServes(t *testing.T) {
	a := serveRoom(t, "GOTOOLCHAIN=", func(context.Context, *app, int) (*clusters.Owned, nodeimage.Image, error) {
		return nil, nodeimage.Image{}, &clusters.Problem{What: "docker does not answer", Mend: "make setup"}
	})
	resp, err := http.Get(a.url + "/course.tar.gz")
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
	contains(t, a.progress.String(), "this room lends no clusters now: docker does not answer (mend: make setup)")
	if strings.Contains(a.printed, "CLUSTER=room") {
		t.Errorf("it says that it lends:\n%s", a.printed)
	}
}

func TestBorrowingNeedsAHandout(t *testing.T) {
	a, _, _ := boardApp(t)
	err := execute(t.Context(), a, []string{"--cluster", "room", "check", "1"})
	if exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
		t.Fatalf("without a handout: %v", err)
	}
	contains(t, err.Error(), "env.sh", "CLUSTER=auto")
	err = execute(t.Context(), a, []string{"--cluster", "room", "check", "1", "--keep"})
	if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "KEEP=1") {
		t.Errorf("to keep a borrowed one: %v", err)
	}
}

// What is no verdict is done on this machine.
func TestTheRoomLendsForVerdictsOnly(t *testing.T) {
	a, _, progress := newTestApp(t)
	a.cluster = onRoom
	if got := a.chosen(t.Context()); got != onKind || !strings.Contains(progress.String(), "for verdicts only") {
		t.Errorf("chosen() = %s, and says %q", got, progress)
	}
}

func TestWhoWaitsIsOfferedWhatAnswersAtOnce(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	c, err := course.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, lab := range c.Labs {
		for _, check := range lab.Checks {
			all += len(check.Needs) - len(withoutPods(check.Needs))
		}
	}
	for _, tc := range []struct {
		asks                judging
		command, difference string
	}{
		{judging{}, "CLUSTER=embedded make lab-N", ""},
		{judging{"make lab-1", c, []int{1}}, "CLUSTER=embedded make lab-1", "all its checks run there, too"},
		{judging{"make watch-7", c, []int{7}}, "CLUSTER=embedded make watch-7", strconv.Itoa(all) + " checks need real Pods, and stay open there"},
	} {
		a := &app{judges: tc.asks}
		if command, difference := a.instead(); command != tc.command || difference != tc.difference {
			t.Errorf("%v: %q, %q", tc.asks.labs, command, difference)
		}
	}
}

func withoutPods(needs []string) (rest []string) {
	for _, need := range needs {
		if need != course.NeedsPods {
			rest = append(rest, need)
		}
	}
	return rest
}
