package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/board/boardtest"
	"github.com/example/operator-lab/labs/internal/board/outbox"
	"github.com/example/operator-lab/labs/internal/board/room"
	"github.com/example/operator-lab/labs/internal/board/store"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// inRoom is a board of the small course, and Ada's checkout of it.
type inRoom struct {
	*testing.T
	*app
	out   *bytes.Buffer
	board *boardtest.Board
	c     *course.Course
}

func newInRoom(t *testing.T) *inRoom {
	t.Helper()
	a, out := appInSmallCourse(t)
	t.Setenv(outbox.ConfigVariable, "")
	a.in = strings.NewReader("")
	c, err := a.course()
	if err != nil {
		t.Fatal(err)
	}
	r := &inRoom{t, a, out, boardtest.Serve(t, c, room.DefaultRules), c}
	config := outbox.Config{URL: r.board.URL, Token: r.board.Learner(t, "Ada"), Learner: "Ada"}
	if err := outbox.WriteConfig(a.state, config); err != nil {
		t.Fatal(err)
	}
	return r
}

// lab runs a command and returns what it prints.
func (r *inRoom) lab(cmd *cobra.Command, args ...string) (string, error) {
	r.Helper()
	r.out.Reset()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := with(cmd, append([]string{}, args...)...).ExecuteContext(r.Context()) // never nil, which is the test's own line
	return r.out.String(), err
}

func (r *inRoom) mustLab(cmd *cobra.Command, args ...string) string {
	r.Helper()
	text, err := r.lab(cmd, args...)
	if err != nil {
		r.Fatalf("%s %q: %v after %q", cmd.Name(), args, err, text)
	}
	return text
}

// mine writes something of Ada's into a workspace at the start of lab 1.
func (r *inRoom) mine() course.Tree {
	r.Helper()
	if _, err := workspace.Ensure(r.Context(), r.c, r.workspace); err != nil {
		r.Fatal(err)
	}
	coursetest.Write(r, r.workspace, "notes", "mine")
	coursetest.Write(r, r.workspace, "main.go", "package main // half a thought\n")
	return r.tree()
}

func (r *inRoom) tree() course.Tree {
	r.Helper()
	tree, err := course.ReadTree(r.workspace)
	if err != nil {
		r.Fatal(err)
	}
	return tree
}

func (r *inRoom) isStage(n int) bool {
	r.Helper()
	want, err := r.c.Render(n)
	if err != nil {
		r.Fatal(err)
	}
	return len(want.Diff(r.tree())) == 0
}

// answers are what the board has heard.
func (r *inRoom) answers() []store.Answer {
	r.Helper()
	receipts, err := r.board.Store.Receipts(r.Context(), 0)
	if err != nil {
		r.Fatal(err)
	}
	var all []store.Answer
	for _, receipt := range receipts {
		all = append(all, receipt.Answer)
	}
	return all
}

func TestJoinGoesWhereTheRoomIsAndTheWorkComesBack(t *testing.T) {
	r := newInRoom(t)
	mine := r.mine()
	r.board.Say(t, "kind", "step", "lab", "3")
	text := r.mustLab(newJoinCommand(r.app))
	for _, want := range []string{"is now the starter of lab 3", "Your work was saved first: `make undo` brings it back.", "Next: labs/03-shout/README.md, then `make lab-3`"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if !r.isStage(2) || !slices.Equal(r.answers(), []store.Answer{store.Joined}) {
		t.Errorf("the start of lab 3: %v; the board has heard %q", r.isStage(2), r.answers())
	}
	r.mustLab(newUndoCommand(r.app))
	if diff := mine.Diff(r.tree()); diff != nil {
		t.Errorf("not what it was: %q", diff)
	}
}

// Nothing changes before the learner says so: neither by a message, nor by an answer that is not yes.
func TestNothingChangesBeforeTheLearnerConfirms(t *testing.T) {
	r := newInRoom(t)
	mine := r.mine()
	r.board.Say(t, "kind", "step", "lab", "2")
	if text := r.mustLab(newMessagesCommand(r.app)); !strings.Contains(text, "lab 2: Say whom") || !strings.Contains(text, "`make join`") {
		t.Errorf("told %q", text)
	}
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	r.in = program
	for _, answer := range []string{"n\n", "\n"} {
		if _, err := io.WriteString(person, answer); err != nil {
			t.Fatal(err)
		}
		if text, err := r.lab(newJoinCommand(r.app)); exit.Code(err) != exit.UsageError || !strings.Contains(text, "your work is saved first. Go on? [y/N]") {
			t.Errorf("after %q: %v, %q", answer, err, text)
		}
		if diff := mine.Diff(r.tree()); diff != nil || slices.Contains(r.answers(), store.Joined) {
			t.Errorf("after %q: %q changed, the board has heard %q", answer, diff, r.answers())
		}
	}
	if _, err := io.WriteString(person, "y\n"); err != nil {
		t.Fatal(err)
	}
	if r.mustLab(newJoinCommand(r.app)); !r.isStage(1) {
		t.Error("after yes it is not the start of lab 2")
	}
	// Consent beforehand: nobody is asked.
	r.mustLab(newUndoCommand(r.app))
	r.yes = true
	if r.mustLab(newJoinCommand(r.app)); !r.isStage(1) {
		t.Error("after --yes it is not the start of lab 2")
	}
}

// Somebody comes when the room is at lab 3 and has nothing yet.
func TestALateJoinerIsWhereTheRoomIs(t *testing.T) {
	r := newInRoom(t)
	r.board.Say(t, "kind", "step", "lab", "3")
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	r.in = program // there is nothing to lose, and so nothing to ask
	if text := r.mustLab(newJoinCommand(r.app)); !strings.Contains(text, "Created workspace/: the starter of lab 3.") || !r.isStage(2) {
		t.Errorf("%q", text)
	}
	if !slices.Equal(r.answers(), []store.Answer{store.Joined}) {
		t.Errorf("the board has heard %q", r.answers())
	}
}

func TestJoinAndMessagesSayWhatIsMissing(t *testing.T) {
	r := newInRoom(t)
	mine := r.mine()
	expect := func(code int, says string, cmd *cobra.Command, args ...string) {
		t.Helper()
		text, err := r.lab(cmd, args...)
		if exit.Code(err) != code || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: %v after %q, want %q", cmd.Name(), args, err, text, says)
		}
		if diff := mine.Diff(r.tree()); diff != nil {
			t.Errorf("%s %q changed %q", cmd.Name(), args, diff)
		}
	}
	expect(exit.UsageError, "make join N=5", newJoinCommand(r.app))
	expect(exit.UsageError, "not asked the room", newJoinCommand(r.app), "--stay")
	expect(exit.UsageError, "1 to 3", newJoinCommand(r.app), "4")
	expect(exit.UsageError, "lab join --stay", newJoinCommand(r.app), "--stay", "2")
	expect(exit.UsageError, "takes no arguments", newMessagesCommand(r.app), "now")
	if text := r.mustLab(newMessagesCommand(r.app)); !strings.Contains(text, "has said nothing today") {
		t.Errorf("nothing was said: %q", text)
	}
	ahead := store.Message{Kind: store.Step, Lab: 9} // of a course that has more labs
	if err := r.board.Store.AddMessage(t.Context(), &ahead); err != nil {
		t.Fatal(err)
	}
	r.board.Say(t, "kind", "hint", "to", "all", "text", "x") // the board has read both now
	expect(exit.UsageError, "labs 1 to 3", newJoinCommand(r.app))
	r.board.Stop(t)
	expect(exit.EnvironmentError, "make join N=5", newJoinCommand(r.app))
	expect(exit.EnvironmentError, "ask the board", newMessagesCommand(r.app))
	if err := os.Remove(filepath.Join(r.state, outbox.ConfigFile)); err != nil {
		t.Fatal(err)
	}
	expect(exit.UsageError, "no board is configured", newJoinCommand(r.app))
	expect(exit.UsageError, "no board is configured", newMessagesCommand(r.app))
	if text := r.mustLab(newJoinCommand(r.app), "2"); !strings.Contains(text, "is now the starter of lab 2") || !r.isStage(1) {
		t.Errorf("without a board: %q", text)
	}
}

func TestWhoNamesTheRoomsLabHasJoinedItAndWhoStaysSaysSo(t *testing.T) {
	r := newInRoom(t)
	mine := r.mine()
	r.board.Say(t, "kind", "step", "lab", "2")
	r.mustLab(newJoinCommand(r.app), "3")
	if got := r.answers(); len(got) != 0 {
		t.Errorf("at lab 3 the board has heard %q", got)
	}
	r.mustLab(newUndoCommand(r.app))
	if text := r.mustLab(newJoinCommand(r.app), "--stay"); !strings.Contains(text, "lab 2 at any time") || mine.Diff(r.tree()) != nil {
		t.Errorf("%q", text)
	}
	r.mustLab(newJoinCommand(r.app), "2")
	if diff := cmp.Diff([]store.Answer{store.Stays, store.Joined}, r.answers()); diff != "" {
		t.Error(diff)
	}
}

// After a check what was said stands below the verdict, once.
func TestACheckShowsWhatWasSaidBelowItsVerdict(t *testing.T) {
	r := newInRoom(t)
	r.board.Say(t, "kind", "hint", "to", "1", "text", "What do you read\nin the first failure?")
	check := func() string {
		r.out.Reset()
		synctest.Test(t, func(t *testing.T) { // its clock stands still while the board answers, which may take longer than the limit
			answer, told := r.listening(t.Context(), r.c, func([]*verdict.Result, *clusters.Cluster) { _, _ = io.WriteString(r.out, "VERDICT\n") })
			answer(nil, nil)
			told()
		})
		return r.out.String()
	}
	text := check()
	if !strings.HasPrefix(text, "VERDICT\n\n── From the instructor to you, ") || !strings.HasSuffix(text, "─\n  What do you read\n  in the first failure?\n") {
		t.Errorf("%q", text)
	}
	if text = check(); text != "VERDICT\n" {
		t.Errorf("the second time: %q", text)
	}
	if text = r.mustLab(newMessagesCommand(r.app)); !strings.Contains(text, "in the first failure?") {
		t.Errorf("what was said is gone: %q", text)
	}
	if diff := cmp.Diff([]store.Answer{store.Seen}, r.answers()); diff != "" {
		t.Error(diff)
	}
}

// Whoever watches hears while they wait, and one key brings them where the room is.
func TestAWatchHearsTheInstructorAndJoins(t *testing.T) {
	r := newInRoom(t)
	r.mine()
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	shown := &screen{}
	r.in, r.app.out, r.err = program, shown, shown
	ctx, interrupt := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- r.attend(ctx, r.c, 1, judgeOf{r.app, "greeting.go"}) }()
	shown.until(t, "· lab 1 ─", "waiting for a save")
	r.board.Say(t, "kind", "hint", "to", "all", "text", "Look up, please.")
	shown.until(t, "From the instructor to everybody", "Look up, please.", "waiting for a save")
	r.board.Say(t, "kind", "step", "lab", "3")
	shown.until(t, "lab 3: Shout", "key j", "waiting for a save")
	if r.isStage(2) {
		t.Error("a message changed the workspace")
	}
	if _, err := io.WriteString(person, "j"); err != nil {
		t.Fatal(err)
	}
	shown.until(t, "is now the starter of lab 3", "undo", "· lab 3 ·", "waiting for a save")
	if !r.isStage(2) || !slices.Contains(r.answers(), store.Joined) {
		t.Errorf("the start of lab 3: %v; the board has heard %q", r.isStage(2), r.answers())
	}
	interrupt()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestTheTerminalSendsHintsAndSteps(t *testing.T) {
	a, out, _ := boardApp(t)
	lab := func(args ...string) error {
		t.Helper()
		out.Reset()
		return execute(t.Context(), a, append([]string{"board"}, args...))
	}
	if err := lab("token", "add", "Ada"); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"Sent to Ada.":       {"send", "--to", "Ada", "read the first"},
		"Sent to everybody.": {"send", "--all", "look up"},
	} {
		if err := lab(args...); err != nil || !strings.HasPrefix(out.String(), says) {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
	if err := lab("step", "3"); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"send", "--to", "Bob", "x"}, {"send", "--all", " "}, {"send", "--all", "\x1b[2J"}} {
		if err := lab(args...); exit.Code(err) != exit.UsageError {
			t.Errorf("%q: %v", args, err)
		}
	}
	s, err := store.Open(t.Context(), filepath.Join(a.state, boardDir))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := s.Messages(t.Context()); err != nil || len(got) != 3 || got[2].Lab != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}
