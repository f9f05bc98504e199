package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// nameLimit is how many characters a name may have: more does not fit the board.
const nameLimit = 60

// Learner is somebody in the room, under the name or pseudonym of the roster. Nothing else about a person
// is kept.
type Learner struct {
	ID   int64
	Name string
}

// CheckName says what is wrong with a name, nil if nothing is. Any script will do; characters that are
// not seen, or turn the line around, will not.
func CheckName(name string) error {
	switch {
	case name == "" || name != strings.TrimSpace(name):
		return fmt.Errorf("the name %q is empty or begins or ends with a space", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not UTF-8", name)
	case utf8.RuneCountInString(name) > nameLimit:
		return fmt.Errorf("the name %q has more than %d characters", name, nameLimit)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the name %q has characters that cannot be seen", name)
	}
	return nil
}

// Learner finds the learner of a name, and adds them when they are new.
func (s *Store) Learner(ctx context.Context, name string) (Learner, error) {
	l := Learner{Name: name}
	err := s.change(ctx, func(tx *sql.Tx) (err error) {
		l.ID, err = s.learner(ctx, tx, name)
		return err
	})
	if err != nil {
		return Learner{}, fmt.Errorf("add learner: %w", err)
	}
	return l, nil
}

func (s *Store) learner(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	const insert = `INSERT INTO learners (name, created) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`
	if _, err = tx.ExecContext(ctx, insert, name, millis(s.now())); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `SELECT id FROM learners WHERE name = ?`, name).Scan(&id)
	return id, err
}

// Learners are all who are in the room, in the order in which they came.
func (s *Store) Learners(ctx context.Context) ([]Learner, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, name FROM learners ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read learners: %w", err)
	}
	defer rows.Close()
	var all []Learner
	for rows.Next() {
		var l Learner
		if err := rows.Scan(&l.ID, &l.Name); err != nil {
			return nil, fmt.Errorf("read learners: %w", err)
		}
		all = append(all, l)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read learners: %w", err)
	}
	return all, nil
}

// SetClock replaces the clock by which tokens expire. It is for tests, and not safe while the store is used.
func (s *Store) SetClock(now func() time.Time) { s.now = now }
