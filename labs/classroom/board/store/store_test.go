package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/board/token"
)

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func learner(t *testing.T, s *store.Store, name string) store.Learner {
	t.Helper()
	l, err := s.Learner(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, s *store.Store, r store.Result) (store.Result, bool) {
	t.Helper()
	added, err := s.AddResult(t.Context(), &r)
	if err != nil {
		t.Fatal(err)
	}
	return r, added
}

// all reads the results as "learner/run/lab/document".
func all(t *testing.T, s *store.Store) []string {
	t.Helper()
	var got []string
	err := s.Each(t.Context(), 0, func(r store.Result) error {
		got = append(got, fmt.Sprintf("%d/%s/%d/%s", r.Learner, r.Run, r.Lab, r.Document))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The same answer is sent again whenever the first acknowledgement was lost, and one run can judge several labs.
func TestAResultIsKeptOnce(t *testing.T) {
	s := open(t, t.TempDir())
	ada, bob := learner(t, s, "Ada"), learner(t, s, "Bob")
	first, added := add(t, s, store.Result{Learner: ada.ID, Run: "r1", Lab: 1, At: time.Now(), Document: []byte("one")})
	if !added || first.ID == 0 || first.Received.IsZero() {
		t.Errorf("added %v: %+v", added, first)
	}
	if _, added = add(t, s, store.Result{Learner: ada.ID, Run: "r1", Lab: 1, At: time.Now(), Document: []byte("forged later")}); added {
		t.Error("the same run was added twice")
	}
	add(t, s, store.Result{Learner: ada.ID, Run: "r1", Lab: 2, At: time.Now(), Document: []byte("two")})
	add(t, s, store.Result{Learner: bob.ID, Run: "r1", Lab: 1, At: time.Now(), Document: []byte("three")})
	if diff := cmp.Diff([]string{"1/r1/1/one", "1/r1/2/two", "2/r1/1/three"}, all(t, s)); diff != "" {
		t.Error(diff)
	}
	if got, err := s.Result(t.Context(), first.ID); err != nil || string(got.Document) != "one" || !got.At.Equal(first.At.Truncate(time.Millisecond)) {
		t.Errorf("read %+v, %v", got, err)
	}
	if _, err := s.Result(t.Context(), 99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a result that is not there: %v", err)
	}
}

func TestALearnerWhoFillsTheBoardIsStoppedAlone(t *testing.T) {
	s := open(t, t.TempDir())
	ada, bob := learner(t, s, "Ada"), learner(t, s, "Bob")
	big := make([]byte, store.Quota/2)
	for i := range 2 {
		add(t, s, store.Result{Learner: ada.ID, Run: fmt.Sprint("r", i), Lab: 1, Document: big})
	}
	_, err := s.AddResult(t.Context(), &store.Result{Learner: ada.ID, Run: "r3", Lab: 1, Document: []byte("x")})
	if !errors.Is(err, store.ErrQuota) {
		t.Errorf("beyond the quota: %v", err)
	}
	if n := len(all(t, s)); n != 2 {
		t.Errorf("%d results are kept", n)
	}
	if _, added := add(t, s, store.Result{Learner: bob.ID, Run: "r", Lab: 1, Document: []byte("x")}); !added {
		t.Error("another learner is stopped, too")
	}
	// A small result takes as much as a ten thousandth: the board sorts them.
	if err := s.Exec(t.Context(), fmt.Sprintf("UPDATE learners SET bytes = %d WHERE id = %d", store.Quota-store.Quota/10_000, bob.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddResult(t.Context(), &store.Result{Learner: bob.ID, Run: "r0", Lab: 1, Document: []byte("x")}); err != nil {
		t.Error(err)
	}
	if _, err := s.AddResult(t.Context(), &store.Result{Learner: bob.ID, Run: "r1", Lab: 1, Document: []byte("x")}); !errors.Is(err, store.ErrQuota) {
		t.Errorf("after ten thousand: %v", err)
	}
}

func TestTokensOpenWhatTheyAreFor(t *testing.T) {
	s := open(t, t.TempDir())
	ada, err := s.AddLearnerToken(t.Context(), "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	teacher, err := s.AddInstructorToken(t.Context(), "front desk", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Authenticate(t.Context(), ada)
	if err != nil || h.Instructor || h.Learner.Name != "Ada" || h.Learner.ID == 0 {
		t.Errorf("the learner's token: %+v, %v", h, err)
	}
	if h, err = s.Authenticate(t.Context(), teacher); err != nil || !h.Instructor || h.Learner.ID != 0 {
		t.Errorf("the instructor's token: %+v, %v", h, err)
	}
	forged, err := token.Parse(strings.Replace(token.New().Reveal(), "-"+token.New().ID, "", 1))
	if err != nil {
		t.Fatal(err)
	}
	forged.ID = ada.ID // the name is known, the secret is not
	for name, tok := range map[string]token.Token{"wrong secret": forged, "unknown": token.New(), "none": {}} {
		if h, err := s.Authenticate(t.Context(), tok); !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

func TestTokensEnd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	now := time.Now().Truncate(time.Millisecond) // as exact as the store
	s.SetClock(func() time.Time { return now })
	ada, err := s.AddLearnerToken(t.Context(), "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	bob, err := s.AddLearnerToken(t.Context(), "Bob", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := open(t, dir).Revoke(t.Context(), "Bob"); n != 1 || err != nil { // by another process
		t.Errorf("revoked %d, %v", n, err)
	}
	if _, err := s.Authenticate(t.Context(), bob); !errors.Is(err, store.ErrDenied) {
		t.Errorf("a revoked token: %v", err)
	}
	if n, err := s.Revoke(t.Context(), "Bob"); n != 0 || err != nil {
		t.Errorf("revoked again: %d, %v", n, err)
	}
	if _, err := s.Revoke(t.Context(), "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody's token: %v", err)
	}
	now = now.Add(time.Hour - time.Second)
	if _, err := s.Authenticate(t.Context(), ada); err != nil {
		t.Errorf("a second before its end: %v", err)
	}
	now = now.Add(time.Second)
	if _, err := s.Authenticate(t.Context(), ada); !errors.Is(err, store.ErrDenied) {
		t.Errorf("an expired token: %v", err)
	}
	list, err := s.Tokens(t.Context())
	if err != nil || len(list) != 2 || list[0].Revoked || !list[1].Revoked || list[0].Instructor || list[1].Name != "Bob" {
		t.Errorf("%+v, %v", list, err)
	}
}

// The file itself is worth stealing as little as possible.
func TestNoTokenIsInTheFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	tok, err := s.AddLearnerToken(t.Context(), "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimPrefix(tok.Reveal(), "labboard-"+tok.ID+"-")
	files, err := filepath.Glob(filepath.Join(dir, store.FileName+"*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := false
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen = seen || strings.Contains(string(data), tok.ID)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds the secret", file)
		}
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if !seen {
		t.Error("the token's name is nowhere: the test reads the wrong files")
	}
}

func TestNamesThatCannotBeShownAreRefused(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"", " Ada", "Ada\n", "a\u202eb", "a\x00b", "\xff", strings.Repeat("ä", 61)} {
		if l, err := s.Learner(t.Context(), name); err == nil {
			t.Errorf("%q was added as %+v", name, l)
		}
	}
	for _, name := range []string{"Ada", "学習者 7", strings.Repeat("ä", 60), "<img src=x onerror=alert(1)>", "=1+1"} {
		if _, err := s.Learner(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got, err := s.Learners(t.Context()); err != nil || len(got) != 5 || got[0].Name != "Ada" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestABoardOfANewerLabIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Exec(t.Context(), "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "version is 99") {
		t.Errorf("opened a newer board: %v", err)
	}
}

// A board of an earlier lab, which had tables for messages, keeps its results and loses those tables.
func TestABoardOfAnOlderLabIsBroughtUpToDate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l, err := s.Learner(t.Context(), "Ada")
	if err == nil {
		_, err = s.AddResult(t.Context(), &store.Result{Learner: l.ID, Run: "r1", Lab: 1, Document: []byte("x")})
	}
	if err == nil {
		err = s.Exec(t.Context(), "CREATE TABLE messages (id TEXT); CREATE TABLE receipts (id TEXT); PRAGMA user_version = 2")
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if n := len(all(t, again)); n != 1 {
		t.Errorf("%d results are there, want the one of before", n)
	}
	left, err := again.Text(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name IN ('messages', 'receipts')")
	if err != nil || left != "0" {
		t.Errorf("%s tables for messages are left, %v", left, err)
	}
}

// Processes open a new board at the same moment and write to it: they wait for each other, and none is told
// that the database is locked.
func TestTwoProcessesWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			l, err := s.Learner(t.Context(), "Ada")
			for i := 0; i < 25 && err == nil; i++ {
				_, err = s.AddResult(t.Context(), &store.Result{Learner: l.ID, Run: fmt.Sprintf("%p-%d", s, i), Lab: 1, Document: []byte("x")})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(all(t, open(t, dir))); n != 100 {
		t.Errorf("%d of 100 results are there", n)
	}
}

// A kill leaves what the kernel has; a power cut leaves what was synced, and no test can pull the plug.
func TestEveryCommitIsSynced(t *testing.T) {
	s := open(t, t.TempDir())
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} {
		if got, err := s.Text(t.Context(), "PRAGMA "+pragma); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", pragma, got, want, err)
		}
	}
}

func TestTheTokensOfARoomEndTogether(t *testing.T) {
	s := open(t, t.TempDir())
	ada, err := s.AddLearnerToken(t.Context(), "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	instructor, err := s.AddInstructorToken(t.Context(), "instructor", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.RevokeLearners(t.Context()); n != want || err != nil {
			t.Errorf("ended %d, %v, want %d", n, err, want)
		}
	}
	if _, err := s.Authenticate(t.Context(), ada); !errors.Is(err, store.ErrDenied) {
		t.Errorf("a learner's: %v", err)
	}
	if _, err := s.Authenticate(t.Context(), instructor); err != nil {
		t.Errorf("the instructor's: %v", err)
	}
}
