package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// TextLimit is how many characters a hint may have: what is longer, somebody should come and say.
	TextLimit = 500
	// messageLimit is how many messages a board keeps, those that were withdrawn too. A day of lessons has fifty.
	messageLimit = 1000
	// messageAge is how long a message is meant: for the day on which it was said. On the second evening nobody wants
	// the hints of the first.
	messageAge = 12 * time.Hour
)

// ErrMessage is the error for what cannot be said.
var ErrMessage = errors.New("this cannot be said to learners")

// Kind is what a message asks for.
type Kind string

// The kinds of messages.
const (
	// Hint is text to read.
	Hint Kind = "hint"
	// Step asks everybody to go on at the start of a lab. Learners do that themselves, or not.
	Step Kind = "step"
)

// Message is what an instructor said.
type Message struct {
	// ID is drawn, so that no two boards have the same.
	ID string
	// Learner whom it is for, by id; 0 is everybody.
	Learner int64
	Kind    Kind
	// Text of a hint, in lines of characters that can be seen.
	Text string
	// Lab of a step.
	Lab  int
	Sent time.Time
}

// For says whether the message is for that learner.
func (m *Message) For(learner int64) bool { return m.Learner == 0 || m.Learner == learner }

// AddMessage keeps a message, on disk when it returns. ID and Sent are set here, and the text is tidied. The error
// wraps [ErrMessage] when the message is none, and is [ErrNotFound] when there is no such learner.
func (s *Store) AddMessage(ctx context.Context, m *Message) error {
	if err := m.tidy(); err != nil {
		return err
	}
	m.ID = strings.ToLower(rand.Text())
	err := s.change(ctx, func(tx *sql.Tx) error {
		m.Sent = s.now()
		if err := admit(ctx, tx, m.Learner); err != nil {
			return err
		}
		const insert = `INSERT INTO messages (id, learner, kind, text, lab, sent) VALUES (?, nullif(?, 0), ?, ?, ?, ?)`
		_, err := tx.ExecContext(ctx, insert, m.ID, m.Learner, m.Kind, m.Text, m.Lab, millis(m.Sent))
		return err
	})
	if err != nil {
		return fmt.Errorf("keep message: %w", err)
	}
	return nil
}

// tidy makes lines of what a form or a shell sends, and refuses what no terminal should print.
func (m *Message) tidy() error {
	if m.Kind == Step {
		m.Text = ""
		if m.Learner != 0 || m.Lab < 1 {
			return fmt.Errorf("%w: a step brings everybody to a lab", ErrMessage)
		}
		return nil
	}
	m.Lab = 0
	m.Text = strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ").Replace(m.Text))
	unseen := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	switch {
	case m.Kind != Hint:
		return fmt.Errorf("%w: %.20q is no kind of message", ErrMessage, m.Kind)
	case m.Text == "":
		return fmt.Errorf("%w: there is no text", ErrMessage)
	case !utf8.ValidString(m.Text):
		return fmt.Errorf("%w: it is not UTF-8", ErrMessage)
	case utf8.RuneCountInString(m.Text) > TextLimit:
		return fmt.Errorf("%w: it has more than %d characters", ErrMessage, TextLimit)
	case strings.ContainsFunc(m.Text, unseen):
		return fmt.Errorf("%w: it has characters that cannot be seen", ErrMessage)
	}
	return nil
}

// admit says whether there is room for one more message, and somebody to read it.
func admit(ctx context.Context, tx *sql.Tx, learner int64) error {
	var messages, learners int
	const count = `SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM learners WHERE id = ?)`
	if err := tx.QueryRowContext(ctx, count, learner).Scan(&messages, &learners); err != nil {
		return err
	}
	switch {
	case learner != 0 && learners == 0:
		return ErrNotFound
	case messages >= messageLimit:
		return fmt.Errorf("%w: this board has %d messages, and keeps no more", ErrMessage, messages)
	}
	return nil
}

// Withdraw takes a message back: nobody gets it from now on. The error is [ErrNotFound] when it is not in force.
func (s *Store) Withdraw(ctx context.Context, id string) error {
	var gone int64
	err := s.change(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `UPDATE messages SET withdrawn = ? WHERE id = ? AND withdrawn = 0`, millis(s.now()), id)
		if err == nil {
			gone, err = done.RowsAffected()
		}
		return err
	})
	if err == nil && gone == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("withdraw message: %w", err)
	}
	return nil
}

// Messages are those that are in force, the oldest first: neither withdrawn nor older than half a day, and of steps
// only the last.
func (s *Store) Messages(ctx context.Context) ([]Message, error) {
	const query = `SELECT id, ifnull(learner, 0), kind, text, lab, sent FROM messages WHERE withdrawn = 0 AND sent > ?1
		AND (kind <> 'step' OR rowid = (SELECT max(rowid) FROM messages WHERE kind = 'step' AND withdrawn = 0)) ORDER BY rowid`
	rows, err := s.read.QueryContext(ctx, query, millis(s.now().Add(-messageAge)))
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	defer rows.Close()
	var all []Message
	for rows.Next() {
		var m Message
		var sent int64
		if err := rows.Scan(&m.ID, &m.Learner, &m.Kind, &m.Text, &m.Lab, &sent); err != nil {
			return nil, fmt.Errorf("read messages: %w", err)
		}
		m.Sent = moment(sent)
		all = append(all, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return all, nil
}
