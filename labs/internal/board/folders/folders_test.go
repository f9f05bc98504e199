package folders_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/board/boardtest"
	"github.com/example/operator-lab/labs/internal/board/folders"
	"github.com/example/operator-lab/labs/internal/board/intake"
	"github.com/example/operator-lab/labs/internal/board/store"
)

// share is a folder of folders, and the board that reads it.
type share struct {
	*folders.Folders
	t     *testing.T
	dir   string
	store *store.Store
	lines []string
}

func newShare(t *testing.T) *share {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	sh := &share{t: t, dir: t.TempDir(), store: s}
	sh.Folders = folders.New(sh.dir, intake.Intake{Store: s, Course: boardtest.Course(t), Now: time.Now}, func(line string) { sh.lines = append(sh.lines, line) })
	return sh
}

func (s *share) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *share) result(lab int, run string) string {
	s.t.Helper()
	data, err := json.Marshal(boardtest.Result(boardtest.Course(s.t), lab, run, time.Now().Add(-time.Minute)))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// scan scans, and gives what the board has then.
func (s *share) scan() []string {
	s.t.Helper()
	if _, err := s.Scan(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	names := map[int64]string{}
	learners, err := s.store.Learners(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range learners {
		names[l.ID] = l.Name
	}
	got := []string{}
	err = s.store.Each(s.t.Context(), 0, func(r store.Result) error {
		got = append(got, fmt.Sprintf("%s %d %s", names[r.Learner], r.Lab, r.Run))
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func TestFoldersAreReadAndReadAgain(t *testing.T) {
	s := newShare(t)
	s.write("ada/.lab/results/lab-1.json", s.result(1, "a-1"))
	s.write("bob/results/lab-2.json", s.result(2, "b-1"))
	s.write("bob/results/lab-2.xml", "<testsuite/>")
	s.write("bob/results/lab-2.json.tmp", "half")
	s.write("read-me.txt", "not a learner")
	s.write(".hidden/results/lab-1.json", s.result(1, "h-1"))
	want := []string{"ada 1 a-1", "bob 2 b-1"}
	if diff := cmp.Diff(want, s.scan()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, s.scan()); diff != "" {
		t.Errorf("a second look: %s", diff)
	}
	s.write("ada/.lab/results/lab-1.json", s.result(1, "a-2x")) // another length, so that a coarse clock does not hide it
	s.write("cyd/results/lab-7.json", s.result(7, "c-1"))
	if diff := cmp.Diff(append(want, "ada 1 a-2x", "cyd 7 c-1"), s.scan()); diff != "" {
		t.Errorf("what came later: %s", diff)
	}
	if len(s.lines) != 0 {
		t.Errorf("complains: %q", s.lines)
	}
}

// Somebody who has only a folder is in the room, too: they have not begun.
func TestAFolderWithoutResultsIsALearner(t *testing.T) {
	s := newShare(t)
	if err := os.Mkdir(filepath.Join(s.dir, "dan"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.scan()
	if l, err := s.store.Learners(t.Context()); err != nil || len(l) != 1 || l[0].Name != "dan" {
		t.Errorf("%v, %v", l, err)
	}
}

func TestAFolderThatMakesNoSenseIsSaidOnce(t *testing.T) {
	s := newShare(t)
	s.write("ada/results/lab-1.json", "{")
	s.write("ada/results/lab-2.json", strings.Repeat(" ", 1<<20))
	s.write("bob/results/lab-1.json", s.result(1, "b-1"))
	s.write("a\u202eb/results/lab-1.json", s.result(1, "x-1"))
	for range 3 {
		if diff := cmp.Diff([]string{"bob 1 b-1"}, s.scan()); diff != "" {
			t.Error(diff)
		}
	}
	if len(s.lines) != 3 {
		t.Errorf("complains: %q", s.lines)
	}
}

func TestAFolderThatWentAwayIsAnError(t *testing.T) {
	s := newShare(t)
	if err := os.Remove(s.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Scan(t.Context()); err == nil || !strings.Contains(err.Error(), s.dir) {
		t.Errorf("%v", err)
	}
}
