package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// Quota is how many bytes of results one learner may leave on the board: some ten thousand runs. Only
// somebody who means harm gets there, and then it stops with them.
const Quota = 64 << 20

// ErrQuota is the error when a learner's results would take more than [Quota].
var ErrQuota = errors.New("this learner has left as many results as a board keeps")

// Result is one verdict that the board has accepted.
type Result struct {
	// ID grows with every result that is accepted.
	ID      int64
	Learner int64
	Run     string
	Lab     int
	// At is when the run ended, by the board's clock; Received is when the board was told.
	At, Received time.Time
	// Document is the verdict as JSON; [Result.Parse] reads it.
	Document []byte
}

// Parse reads the document.
func (r Result) Parse() (*verdict.Result, error) {
	parsed := &verdict.Result{}
	if err := json.Unmarshal(r.Document, parsed); err != nil {
		return nil, fmt.Errorf("read result %d of the board: %w", r.ID, err)
	}
	return parsed, nil
}

// AddResult keeps a result, on disk when it returns. It is known by learner, run and lab: what is known
// already is left as it is, and added is false. ID and Received are set here.
func (s *Store) AddResult(ctx context.Context, r *Result) (added bool, err error) {
	err = s.change(ctx, func(tx *sql.Tx) error {
		r.Received = s.now()
		const insert = `INSERT INTO results (learner, run, lab, at, received, document) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (learner, run, lab) DO NOTHING RETURNING id`
		err := tx.QueryRowContext(ctx, insert, r.Learner, r.Run, r.Lab, millis(r.At), millis(r.Received), r.Document).Scan(&r.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		added = true
		return account(ctx, tx, r)
	})
	if err != nil {
		return false, fmt.Errorf("keep result: %w", err)
	}
	return added, nil
}

// leastSize is what a result counts at least, in bytes: a learner can leave ten thousand. The board reads all of them when it
// starts, and sorts them.
const leastSize = Quota / 10_000

// account adds the result to what its learner has left here.
func account(ctx context.Context, tx *sql.Tx, r *Result) error {
	var bytes int64
	const update = `UPDATE learners SET bytes = bytes + ? WHERE id = ? RETURNING bytes`
	if err := tx.QueryRowContext(ctx, update, max(len(r.Document), leastSize), r.Learner).Scan(&bytes); err != nil {
		return err
	}
	if bytes > Quota {
		return ErrQuota
	}
	return nil
}

const columns = `SELECT id, learner, run, lab, at, received, document FROM results `

// Each calls do with every result that came after the one with the id after, in the order in which they
// came; 0 is before all. It stops at the first error, and returns it.
func (s *Store) Each(ctx context.Context, after int64, do func(Result) error) error {
	rows, err := s.read.QueryContext(ctx, columns+`WHERE id > ? ORDER BY id`, after)
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return fmt.Errorf("read results: %w", err)
		}
		if err := do(r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	return nil
}

// Result reads one result, or [ErrNotFound].
func (s *Store) Result(ctx context.Context, id int64) (Result, error) {
	r, err := scan(s.read.QueryRowContext(ctx, columns+`WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Result{}, fmt.Errorf("read result %d: %w", id, err)
	}
	return r, nil
}

func scan(row interface{ Scan(...any) error }) (Result, error) {
	var r Result
	var at, received int64
	err := row.Scan(&r.ID, &r.Learner, &r.Run, &r.Lab, &at, &received, &r.Document)
	r.At, r.Received = moment(at), moment(received)
	return r, err
}
