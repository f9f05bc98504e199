//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/board/outbox"
	"github.com/example/operator-lab/labs/internal/classroom"
	"github.com/example/operator-lab/labs/internal/desk"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/rehearsal"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// pupil sits at a desk where nothing is compiled: their verdicts are given, and reported as `lab check` reports them.
type pupil struct {
	*desk.Desk
	verdicts []verdict.Verdict
	silent   bool // the board hears nothing
	did      []string
}

func (p *pupil) Judge(ctx context.Context, lab int, settings ...string) (*verdict.Result, error) {
	p.did = append(p.did, fmt.Sprint("lab ", lab, " ", settings))
	r := &verdict.Result{
		Schema: 1, Lab: lab, Verdict: p.verdicts[0], Run: fmt.Sprint("r", len(p.verdicts)), Started: time.Now(), Seconds: 3,
		Environment: verdict.Finding{Finding: "no cluster", Mend: "make up"},
	}
	p.verdicts = p.verdicts[1:]
	if r.Verdict != verdict.Environment {
		r.Environment = verdict.Finding{}
	}
	if p.silent {
		return r, nil
	}
	// As lab check does, but for its limit of a second.
	state := filepath.Join(p.Handout, ".lab")
	config, err := outbox.ReadConfig(state)
	if err != nil {
		return nil, err
	}
	box := outbox.Open(state, *config)
	if err := box.Put([]*verdict.Result{r}); err != nil {
		return nil, err
	}
	if _, err := box.Flush(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (p *pupil) Solve(_ context.Context, lab int) error {
	p.did = append(p.did, fmt.Sprint("solve ", lab))
	return nil
}

// stage is a rehearsal on a machine that has everything.
type stage struct {
	*rehearse
	farm          *farm
	pupil         *pupil
	out, progress *bytes.Buffer
	temporary     string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	a, out, progress, _ := classroomApp(t)
	t.Setenv("CI", "")
	a.cluster = onKind
	if err := execute(t.Context(), a, []string{"--cluster", onKind, "classroom", "modules"}); err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	out.Reset()
	progress.Reset()
	s := &stage{
		farm: &farm{
			standIn: standIn{"kind/docker"}, state: a.state, specs: map[string]clusters.Spec{}, broken: map[string]error{},
		},
		pupil: &pupil{verdicts: []verdict.Verdict{verdict.Fail, verdict.Pass, verdict.Pass}},
		out:   out, progress: progress, temporary: t.TempDir(),
	}
	t.Setenv("TMPDIR", s.temporary)
	c := newRoom(a)
	owned := clusters.NewOwned(a.state, s.farm)
	c.prepare = func(context.Context, int) (*clusters.Owned, nodeimage.Image, error) {
		return owned, nodeimage.Image{Ref: "node:v1", Local: true, HasOperand: true}, nil
	}
	c.supplies = func(context.Context, nodeimage.Image) map[doctor.Resource]doctor.Supply {
		return map[doctor.Resource]doctor.Supply{doctor.Memory: {Amount: 8 << 30}, doctor.Disk: {Amount: 50 << 30}}
	}
	c.healthy = s.farm.health
	s.rehearse = newRehearse(c)
	s.size, s.sized, s.listen = 3, true, "127.0.0.1:0"
	s.offer = lendFlags{ready: 1, playground: true, given: func(string) bool { return false }}
	s.examine = func(context.Context) []doctor.Finding { return []doctor.Finding{{Name: "disk", OK: true}} }
	s.missing = func(context.Context) ([]string, error) { return nil, nil }
	s.packed = func(context.Context) (bool, error) { return false, nil }
	s.opens = func(context.Context, string) error { return nil }
	s.sit = func(ctx context.Context, dir, archive, server string) (place, error) {
		d, err := desk.Sit(dir, archive)
		if err != nil {
			return nil, err
		}
		s.pupil.Desk = d
		return s.pupil, d.FetchCourse(ctx, server+coursePath)
	}
	return s
}

// requireNothingLeft wants neither files, nor clusters, nor anything of the room that was rehearsed.
func (s *stage) requireNothingLeft(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(s.temporary); err != nil || len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
	if len(s.farm.specs) > 0 || len(recorded(t, s.app)) > 0 {
		t.Errorf("clusters are left: %v, recorded %v", s.farm.specs, recorded(t, s.app))
	}
	for _, name := range []string{boardDir, handoutsDir, "sums", "outbox"} {
		if _, err := os.Stat(filepath.Join(s.state, name)); err == nil {
			t.Errorf("the room's %s has come to be", name)
		}
	}
}

// lines are those of the report that begin so.
func (s *stage) lines(t *testing.T, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains("\n"+s.out.String(), "\n"+want) {
			t.Errorf("no line begins with %q:\n%s%s", want, s.out, s.progress)
		}
	}
}

// From the machine to the page of the board, with the room's own commands, and no trace of it afterwards.
func TestARehearsalTriesAllThatARoomNeeds(t *testing.T) {
	s := newStage(t)
	s.offer.lend, s.offer.given = 1, func(flag string) bool { return flag == "lend" }
	today := &classroom.Room{Schema: 1, Provider: onKind}
	today.Grow(1)
	if err := today.Save(s.state); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(classroom.Dir(s.state), "room.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.run(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, s.progress)
	}
	s.lines(t,
		"✓ machine     the doctor looked at 1 thing",
		"✓ programs    node image node:v1",
		"✓ room        3 learners and 1 cluster at a time for verdicts fit: 2.2 GB of the 8.0 GB of memory, 0.7 GB of the 50.0 GB of disk",
		"! guide       ", // the small course has none
		"✓ course      learners get ",
		"✓ modules     all that",
		"! port        only this machine reaches the room",
		"✓ port        127.0.0.1:0 is free",
		"✓ cluster     ready after 0 s, Kubernetes v1.36.3; 3 clusters will take about ",
		"✓ server      http://127.0.0.1:",
		"✓ handout     unpacked, the course fetched",
		"✓ download    the room gave 1 module, ",
		"✓ lab 1       red as handed out after 3 s, green with our solution after 3 s",
		"✓ lab 3       green with our solution after 3 s, on kind",
		"✓ board       it shows 3 verdicts as the learner saw them",
		"Ready, with 2 things to look at (!).",
		"  make classroom N=3 LEND=1\n",
	)
	want := "lab 1 [CLUSTER=embedded], solve 1, lab 1 [CLUSTER=embedded], solve 3, lab 3 [CLUSTER=kind]"
	if got := strings.Join(s.pupil.did, ", "); got != want {
		t.Errorf("the learner did %s, want %s", got, want)
	}
	if strings.Contains(s.out.String()+s.progress.String(), "labboard-") {
		t.Error("a token was printed")
	}
	if strings.Contains(s.out.String(), "is not packed") {
		t.Error("a room that lends is asked for an image that nobody takes")
	}
	s.requireNothingLeft(t)
	if after, err := os.ReadFile(filepath.Join(classroom.Dir(s.state), "room.json")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the room of today was\n%s\nand is\n%s, %v", before, after, err)
	}
}

// What is wrong ends in its command and in exit code 3; what has nothing to do with it is tried all the same.
func TestARehearsalThatFailsNamesWhatMendsIt(t *testing.T) {
	s := newStage(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s.listen = taken.Addr().String()
	s.offer.given = func(flag string) bool { return flag == "lend" } // none
	s.pupil.verdicts = []verdict.Verdict{verdict.Fail, verdict.Environment}
	s.pupil.silent = true
	go func() { // who has the port is no server of ours
		for {
			conn, err := taken.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	err = s.run(t.Context())
	if exit.Code(err) != exit.EnvironmentError || !errors.Is(err, exit.ErrTold) {
		t.Errorf("lab classroom rehearse: %v", err)
	}
	s.lines(t,
		"! programs    the node image is not packed",
		"✗ port        "+s.listen+" cannot be had: ",
		"✓ server      http://127.0.0.1:",
		"✗ lab 1       with our solution it says environment: no cluster  ->  make up",
		"· lab 3       not tried, because of lab 1",
		"· board       not tried, because of lab 1",
		"Not ready: 2 faults (✗)",
	)
	contains(t, s.out.String(), "make classroom-rehearse N=3 LEND=0 PORT=7778")
	s.requireNothingLeft(t)
}

func TestAnInterruptedRehearsalLeavesNothing(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.opens = func(context.Context, string) error {
		cancel()
		return context.Canceled
	}
	if err := s.run(ctx); exit.Code(err) != exit.Interrupted {
		t.Errorf("lab classroom rehearse: %v", err)
	}
	if strings.Contains(s.out.String(), "✗") {
		t.Errorf("an interrupt is told as a fault:\n%s", s.out)
	}
	s.requireNothingLeft(t)
}

func TestARehearsalOfARoomThatDoesNotFit(t *testing.T) {
	s := newStage(t)
	s.size = 40
	if err := s.understand(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.askPrograms(t.Context())
	got := s.askRoom(t.Context())
	if len(got) != 1 || got[0].Mark != rehearsal.Wrong || got[0].Mend != "N=15 fits, FORCE=1 tries it all the same" {
		t.Errorf("%v", got)
	}
	s.size = 3
	if err := s.understand(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.askRoom(t.Context()); len(got) != 1 || !strings.Contains(got[0].Detail, "3 learners and "+lends(s.room)+" fit: ") {
		t.Errorf("%v", got)
	}
	s.supplies = func(context.Context, nodeimage.Image) map[doctor.Resource]doctor.Supply {
		return map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 62, Mend: "make setup"}}
	}
	if got := s.askRoom(t.Context()); len(got) != 1 || got[0].Mend != "make setup" {
		t.Errorf("%v", got)
	}
}

// A board that swallows verdicts, or tells others, would be noticed by nobody but the instructor.
func TestTheBoardHasToSayWhatTheLearnerSaw(t *testing.T) {
	exported := `{"learners": [
		{"name": "Somebody", "labs": [{"history": [{"run": "r1", "verdict": "pass"}]}]},
		{"name": "Rehearsal", "labs": [{"history": [{"run": "r2", "verdict": "fail"}, {"run": "r3", "verdict": "pass"}]}]}]}`
	shown, err := verdictsOf([]byte(exported))
	if err != nil || len(shown) != 2 || shown["r2"] != verdict.Fail || shown["r3"] != verdict.Pass {
		t.Errorf("%v, %v", shown, err)
	}
	fail, pass := &verdict.Result{Lab: 1, Verdict: verdict.Fail}, &verdict.Result{Lab: 1, Verdict: verdict.Pass}
	for name, tc := range map[string]struct {
		answers map[string]*verdict.Result
		want    rehearsal.Mark
	}{
		"as they saw them": {map[string]*verdict.Result{"r2": fail, "r3": pass}, rehearsal.Fine},
		"another verdict":  {map[string]*verdict.Result{"r2": pass, "r3": pass}, rehearsal.Wrong},
		"the last is late": {map[string]*verdict.Result{"r2": fail, "r4": pass}, rehearsal.Doubtful},
		"nothing at all":   {map[string]*verdict.Result{"r1": pass}, rehearsal.Wrong},
	} {
		if got := compareBoard(tc.answers, shown); got.Mark != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
