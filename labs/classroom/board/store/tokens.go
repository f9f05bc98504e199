package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/token"
)

// ErrDenied is the error for a token that does not open the board: unknown, wrong, expired or revoked.
// Which of them it is, nobody is told who does not hold a good one.
var ErrDenied = errors.New("the token is not known, has expired or was revoked")

// Holder is who a token belongs to.
type Holder struct {
	// TokenID names the token.
	TokenID string
	// Learner whose results the token may write; the zero value for an instructor's.
	Learner Learner
	// Instructor: the token may read everything, and write no results.
	Instructor bool
}

// TokenInfo is what a list shows of a token.
type TokenInfo struct {
	ID, Name   string
	Instructor bool
	Created    time.Time
	Expires    time.Time
	Revoked    bool
}

// AddLearnerToken makes a token that writes results of the learner of that name, who is added when new.
func (s *Store) AddLearnerToken(ctx context.Context, name string, valid time.Duration) (token.Token, error) {
	return s.addToken(ctx, name, valid, func(tx *sql.Tx) (any, error) { return s.learner(ctx, tx, name) })
}

// AddInstructorToken makes a token that reads the board. The name only stands in lists.
func (s *Store) AddInstructorToken(ctx context.Context, name string, valid time.Duration) (token.Token, error) {
	return s.addToken(ctx, name, valid, func(*sql.Tx) (any, error) { return nil, CheckName(name) })
}

func (s *Store) addToken(ctx context.Context, name string, valid time.Duration, holder func(*sql.Tx) (any, error)) (token.Token, error) {
	t := token.New()
	err := s.change(ctx, func(tx *sql.Tx) error {
		learner, err := holder(tx)
		if err != nil {
			return err
		}
		const insert = `INSERT INTO tokens (id, hash, learner, name, created, expires) VALUES (?, ?, ?, ?, ?, ?)`
		_, err = tx.ExecContext(ctx, insert, t.ID, t.Hash(), learner, name, millis(s.now()), millis(s.now().Add(valid)))
		return err
	})
	if err != nil {
		return token.Token{}, fmt.Errorf("add token: %w", err)
	}
	return t, nil
}

// Authenticate finds out whose token it is. The error is [ErrDenied] unless the board cannot be read.
func (s *Store) Authenticate(ctx context.Context, t token.Token) (Holder, error) {
	var hash []byte
	var learner sql.NullInt64
	var name sql.NullString
	var expires, revoked int64
	const query = `SELECT t.hash, t.expires, t.revoked, t.learner, l.name FROM tokens t LEFT JOIN learners l ON l.id = t.learner WHERE t.id = ?`
	err := s.read.QueryRowContext(ctx, query, t.ID).Scan(&hash, &expires, &revoked, &learner, &name)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Holder{}, fmt.Errorf("read token: %w", err)
	}
	// An unknown token is compared, too: with nothing, which takes as long.
	if !t.Matches(hash) || revoked != 0 || !s.now().Before(moment(expires)) {
		return Holder{}, ErrDenied
	}
	return Holder{
		TokenID: t.ID, Instructor: !learner.Valid,
		Learner: Learner{ID: learner.Int64, Name: name.String},
	}, nil
}

// Tokens are all tokens that were ever made, the latest last.
func (s *Store) Tokens(ctx context.Context) ([]TokenInfo, error) {
	const query = `SELECT id, name, learner IS NULL, created, expires, revoked FROM tokens ORDER BY created, rowid`
	rows, err := s.read.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	defer rows.Close()
	var all []TokenInfo
	for rows.Next() {
		var t TokenInfo
		var created, expires, revoked int64
		if err := rows.Scan(&t.ID, &t.Name, &t.Instructor, &created, &expires, &revoked); err != nil {
			return nil, fmt.Errorf("read tokens: %w", err)
		}
		t.Created, t.Expires, t.Revoked = moment(created), moment(expires), revoked != 0
		all = append(all, t)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return all, nil
}

// Revoke ends every token of that name, or the one with that id, from now on. It returns how many were
// still open, and [ErrNotFound] when there was none at all.
func (s *Store) Revoke(ctx context.Context, nameOrID string) (int, error) {
	var open, known int
	err := s.change(ctx, func(tx *sql.Tx) error {
		const count = `SELECT count(*), count(*) FILTER (WHERE revoked = 0) FROM tokens WHERE name = ?1 OR id = ?1`
		if err := tx.QueryRowContext(ctx, count, nameOrID).Scan(&known, &open); err != nil {
			return err
		}
		const update = `UPDATE tokens SET revoked = ?2 WHERE (name = ?1 OR id = ?1) AND revoked = 0`
		_, err := tx.ExecContext(ctx, update, nameOrID, millis(s.now()))
		return err
	})
	if err == nil && known == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("revoke tokens of %s: %w", nameOrID, err)
	}
	return open, nil
}

// RevokeLearners ends every learner's token, from now on. It returns how many were still good.
func (s *Store) RevokeLearners(ctx context.Context) (int, error) {
	var good int
	now := millis(s.now())
	err := s.change(ctx, func(tx *sql.Tx) error {
		const count = `SELECT count(*) FROM tokens WHERE learner IS NOT NULL AND revoked = 0 AND expires > ?`
		if err := tx.QueryRowContext(ctx, count, now).Scan(&good); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked = ? WHERE learner IS NOT NULL AND revoked = 0`, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("revoke the learners' tokens: %w", err)
	}
	return good, nil
}
