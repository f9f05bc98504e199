package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Answer is what a learner's side says to a message.
type Answer string

// The answers. Only a step is joined, or stayed out of.
const (
	// Seen: the message was shown.
	Seen Answer = "seen"
	// Joined: the learner's workspace is at the start of the lab.
	Joined Answer = "joined"
	// Stays: the learner goes on where they are.
	Stays Answer = "stays"
)

// Receipt is a learner's answer to a message.
type Receipt struct {
	// ID grows with every answer.
	ID      int64
	Message string
	Learner int64
	Answer  Answer
}

// AddReceipt keeps an answer, on disk when it returns. Giving it again moves it to the end. The error is [ErrNotFound]
// when there is no such message for that learner, or it was withdrawn, or asks for no such answer.
func (s *Store) AddReceipt(ctx context.Context, r Receipt) error {
	var kept int64
	err := s.change(ctx, func(tx *sql.Tx) error {
		const insert = `INSERT OR REPLACE INTO receipts (message, learner, answer, at) SELECT id, ?2, ?3, ?4 FROM messages
			WHERE id = ?1 AND (learner IS NULL OR learner = ?2) AND withdrawn = 0
			AND (?3 = 'seen' OR kind = 'step' AND ?3 IN ('joined', 'stays'))`
		done, err := tx.ExecContext(ctx, insert, r.Message, r.Learner, r.Answer, millis(s.now()))
		if err == nil {
			kept, err = done.RowsAffected()
		}
		return err
	})
	if err == nil && kept == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("keep receipt: %w", err)
	}
	return nil
}

// Receipts are the answers that came after the one with the id after, in their order; 0 is before all.
func (s *Store) Receipts(ctx context.Context, after int64) ([]Receipt, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, message, learner, answer FROM receipts WHERE id > ? ORDER BY id`, after)
	if err != nil {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	defer rows.Close()
	var all []Receipt
	for rows.Next() {
		var r Receipt
		if err := rows.Scan(&r.ID, &r.Message, &r.Learner, &r.Answer); err != nil {
			return nil, fmt.Errorf("read receipts: %w", err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	return all, nil
}
