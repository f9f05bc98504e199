package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/board/store"
)

// say keeps a message and returns its id.
func say(t *testing.T, s *store.Store, m store.Message) string {
	t.Helper()
	if err := s.AddMessage(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// said reads the messages that are in force as "learner kind text lab".
func said(t *testing.T, s *store.Store) []string {
	t.Helper()
	messages, err := s.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range messages {
		all = append(all, fmt.Sprintf("%d %s %s %d", m.Learner, m.Kind, m.Text, m.Lab))
	}
	return all
}

func TestMessagesAreKeptUntilTheyAreWithdrawnOrOld(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	now := time.Now()
	s.SetClock(func() time.Time { return now })
	ada := learner(t, s, "Ada")
	first := say(t, s, store.Message{Kind: store.Hint, Text: "  read\r\nthe\tfirst\n"})
	now = now.Add(time.Hour)
	second := say(t, s, store.Message{Learner: ada.ID, Kind: store.Hint, Text: "yours", Lab: 7})
	say(t, s, store.Message{Kind: store.Step, Lab: 3, Text: "never shown"})
	third := say(t, s, store.Message{Kind: store.Step, Lab: 5})
	if err := s.Withdraw(t.Context(), say(t, s, store.Message{Kind: store.Hint, Text: "a slip"})); err != nil {
		t.Error(err)
	}
	want := []string{"0 hint read\nthe first 0", "1 hint yours 0", "0 step  5"} // of the steps only the last
	if diff := cmp.Diff(want, said(t, open(t, dir))); diff != "" || first == second {
		t.Error(diff)
	}
	if err := s.Withdraw(t.Context(), third); err != nil {
		t.Error(err)
	}
	if got := said(t, s); got[len(got)-1] != "0 step  3" {
		t.Errorf("the step before it is in force again: %q", got)
	}
	for _, id := range []string{third, "nothing"} {
		if err := s.Withdraw(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("withdraw %s: %v", id, err)
		}
	}
	now = now.Add(11*time.Hour + time.Second) // half a day after the first
	if diff := cmp.Diff([]string{"1 hint yours 0", "0 step  3"}, said(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatNoTerminalShouldPrintIsNotKept(t *testing.T) {
	s := open(t, t.TempDir())
	for name, m := range map[string]store.Message{
		"nothing": {Kind: store.Hint, Text: " \n"}, "an escape sequence": {Kind: store.Hint, Text: "\x1b[2Jgone"},
		"a line turned around": {Kind: store.Hint, Text: "a\u202eb"}, "no UTF-8": {Kind: store.Hint, Text: "a\xff"},
		"too long": {Kind: store.Hint, Text: strings.Repeat("ä", store.TextLimit+1)}, "no kind": {Text: "x"},
		"another kind": {Kind: "order", Text: "x"}, "a step of one": {Kind: store.Step, Learner: 1, Lab: 2}, "a step nowhere": {Kind: store.Step},
	} {
		if err := s.AddMessage(t.Context(), &m); !errors.Is(err, store.ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	say(t, s, store.Message{Kind: store.Hint, Text: strings.Repeat("ä", store.TextLimit)})
	say(t, s, store.Message{Kind: store.Hint, Text: "<img src=x onerror=alert(1)> 学習者 👋"})
	if err := s.AddMessage(t.Context(), &store.Message{Kind: store.Hint, Text: "x", Learner: 99}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a hint for nobody: %v", err)
	}
	if n := len(said(t, s)); n != 2 {
		t.Errorf("%d messages are kept", n)
	}
}

func TestABoardKeepsOnlySoManyMessages(t *testing.T) {
	s := open(t, t.TempDir())
	err := s.Exec(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
		INSERT INTO messages (id, kind, text, lab, sent) SELECT 'm' || i, 'hint', 'x', 0, 0 FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddMessage(t.Context(), &store.Message{Kind: store.Hint, Text: "x"}); !errors.Is(err, store.ErrMessage) {
		t.Errorf("the thousand and first: %v", err)
	}
}

// Whoever asks for what came after an answer gets each that is newer, also one that was given before.
func TestAReceiptIsForAMessageOfThatLearner(t *testing.T) {
	s := open(t, t.TempDir())
	ada, bob := learner(t, s, "Ada"), learner(t, s, "Bob")
	hers := say(t, s, store.Message{Learner: ada.ID, Kind: store.Hint, Text: "yours"})
	step := say(t, s, store.Message{Kind: store.Step, Lab: 5})
	gone := say(t, s, store.Message{Kind: store.Hint, Text: "gone"})
	if err := s.Withdraw(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		r    store.Receipt
		want error
	}{
		{store.Receipt{Message: hers, Learner: ada.ID, Answer: store.Seen}, nil},
		{store.Receipt{Message: hers, Learner: bob.ID, Answer: store.Seen}, store.ErrNotFound},
		{store.Receipt{Message: hers, Learner: ada.ID, Answer: store.Joined}, store.ErrNotFound},
		{store.Receipt{Message: step, Learner: bob.ID, Answer: store.Joined}, nil},
		{store.Receipt{Message: step, Learner: bob.ID, Answer: store.Stays}, nil},
		{store.Receipt{Message: step, Learner: bob.ID, Answer: store.Joined}, nil},
		{store.Receipt{Message: step, Learner: bob.ID, Answer: "obeys"}, store.ErrNotFound},
		{store.Receipt{Message: gone, Learner: bob.ID, Answer: store.Seen}, store.ErrNotFound},
		{store.Receipt{Message: "nothing", Learner: bob.ID, Answer: store.Seen}, store.ErrNotFound},
	} {
		if err := s.AddReceipt(t.Context(), tc.r); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc.r, err)
		}
	}
	all, err := s.Receipts(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all {
		got = append(got, fmt.Sprint(r.Learner, " ", r.Answer))
	}
	if diff := cmp.Diff([]string{"1 seen", "2 stays", "2 joined"}, got); diff != "" {
		t.Error(diff)
	}
	if newer, err := s.Receipts(t.Context(), all[1].ID); err != nil || len(newer) != 1 || newer[0].ID <= all[1].ID {
		t.Errorf("after the second: %+v, %v", newer, err)
	}
}

// The boards of rooms that began before there were messages go on.
func TestAnOlderBoardIsBroughtUpToDate(t *testing.T) {
	dir := t.TempDir()
	old := open(t, dir)
	ada := learner(t, old, "Ada")
	add(t, old, store.Result{Learner: ada.ID, Run: "r1", Lab: 1, Document: []byte("one")})
	if err := old.Exec(t.Context(), "DROP TABLE receipts; DROP TABLE messages; PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if diff := cmp.Diff([]string{"1/r1/1/one"}, all(t, s)); diff != "" {
		t.Error(diff)
	}
	say(t, s, store.Message{Learner: ada.ID, Kind: store.Hint, Text: "yours"})
	if got := said(t, open(t, dir)); len(got) != 1 {
		t.Errorf("opened once more: %q", got)
	}
}
