// Package board keeps what learners' machines send, and shows an instructor who is where, and who is stuck. Learners reach what takes
// their results, over TLS; the page is for this machine alone.
package board

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// FileName is the file of a store: one JSON object in each line, who joined and what they sent.
const FileName = "results.jsonl"

// entry is a line: one of Joined and Result is there.
type entry struct {
	Learner string    `json:"learner"`
	At      time.Time `json:"at"`
	// Joined is the SHA-256 sum of the learner's token.
	Joined string          `json:"joined,omitempty"`
	Result *verdict.Result `json:"result,omitempty"`
}

// Store is what a board knows. A line is on the disk before anybody hears that it was taken.
type Store struct {
	course *course.Course

	mu       sync.Mutex
	file     *os.File
	size     int64
	learners map[string]*learner // by their names in lower case
}

type learner struct {
	*progress.Learner
	token string          // its sum
	known map[string]bool // runs and labs
}

// Open reads the store in dir, and makes one where there is none. What a crash has left of a line is cut off.
func Open(dir string, c *course.Course) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, FileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &Store{course: c, file: file, learners: map[string]*learner{}}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s, file.Truncate(s.size)
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read %s: %w", file.Name(), err), file.Close())
		}
		s.add(e)
		s.size += int64(len(line))
	}
}

// Close closes the file.
func (s *Store) Close() error { return s.file.Close() }

// add takes in what is, or will be, in the file at the end of what was read.
func (s *Store) add(e entry) {
	l := s.learners[strings.ToLower(e.Learner)]
	if l == nil {
		l = &learner{Learner: progress.NewLearner(e.Learner), known: map[string]bool{}}
		s.learners[strings.ToLower(e.Learner)] = l
	}
	switch {
	case e.Result == nil:
		l.token = e.Joined
	case e.Result.Lab <= len(s.course.Labs): // else it is of a course that had more labs
		l.Add(progress.NewAttempt(s.size, e.At, e.Result))
		l.known[runAndLab(e.Result)] = true
	}
}

func runAndLab(r *verdict.Result) string { return fmt.Sprint(r.Run, " ", r.Lab) }

func (s *Store) append(e entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		line = append(line, '\n')
		_, err = s.file.WriteAt(line, s.size)
	}
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("%w: keep what %s sent: %w", errOurs, e.Learner, err)
	}
	s.add(e)
	s.size += int64(len(line))
	return nil
}

var (
	// ErrTaken says that somebody else has the name.
	ErrTaken = errors.New("somebody has joined under that name already: take another one")
	// ErrName says that a text is no name.
	ErrName = errors.New("a name has up to 40 letters, digits, spaces, dots, dashes and underscores, and begins with a letter or a digit")

	nameForm = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._-]{0,39}$`)
)

// Join gives somebody a name that nobody has yet, and a token. Who has the token may have the name again.
func (s *Store) Join(name, token string, now time.Time) (string, error) {
	name = strings.TrimSpace(name)
	if !nameForm.MatchString(name) {
		return "", ErrName
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.learners[strings.ToLower(name)]; l != nil {
		if l.token != sum(token) {
			return "", ErrTaken
		}
		return token, nil
	}
	token = rand.Text()
	return token, s.append(entry{Learner: name, At: now.UTC(), Joined: sum(token)})
}

func sum(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Holder is the name of who has a token, "" for nobody.
func (s *Store) Holder(token string) string {
	kept := sum(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.learners {
		if l.token == kept {
			return l.Name
		}
	}
	return ""
}

// Keep keeps a learner's result, once.
func (s *Store) Keep(name string, r *verdict.Result, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.learners[strings.ToLower(name)].known[runAndLab(r)] {
		return nil
	}
	return s.append(entry{Learner: name, At: at.UTC(), Result: r})
}

// View calls look with the learners, sorted by name, who do not change meanwhile.
func (s *Store) View(look func([]*progress.Learner) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*progress.Learner
	for _, name := range slices.Sorted(maps.Keys(s.learners)) {
		all = append(all, s.learners[name].Learner)
	}
	return look(all)
}

// result reads the result of an attempt, which begins there in the file.
func (s *Store) result(id int64) (*verdict.Result, error) {
	var e entry
	err := json.NewDecoder(io.NewSectionReader(s.file, id, 1<<40)).Decode(&e)
	return e.Result, err
}
