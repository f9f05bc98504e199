// Package store keeps what a board knows in one SQLite file: learners, tokens, every result that was accepted, and
// what instructors said. Several processes may use the file at once, such as a serving board and `classroom board token add`.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite", in Go: the board needs no C library on any platform
)

// FileName is the database's name in the folder of a board.
const FileName = "board.db"

// busyTimeout is how long a write waits for one of another process. Writes take milliseconds; a disk that
// is slower than this does not work.
const busyTimeout = 10 * time.Second

// lockRetry is how often a process asks whether another one has opened the board, which takes milliseconds.
const lockRetry = 5 * time.Millisecond

// readers is how many requests may read side by side.
const readers = 4

// pragmas of every connection. With a write-ahead log (see lock) readers and the writer do not wait for each other;
// FULL syncs the log at every commit, so that what was answered with "accepted" survives a power cut.
var pragmas = []string{
	"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
}

// versions make the tables, each from those of the one before. A file's version, kept as SQLite's user_version, is how
// many of them it has been through; so none of them is ever changed.
var versions = []string{firstTables, messageTables, withoutMessages}

const firstTables = `
CREATE TABLE learners (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	name    TEXT NOT NULL UNIQUE,
	bytes   INTEGER NOT NULL DEFAULT 0,
	created INTEGER NOT NULL
) STRICT;
CREATE TABLE tokens (
	id      TEXT PRIMARY KEY,
	hash    BLOB NOT NULL,
	learner INTEGER REFERENCES learners(id),
	name    TEXT NOT NULL,
	created INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	revoked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE results (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	learner  INTEGER NOT NULL REFERENCES learners(id),
	run      TEXT NOT NULL,
	lab      INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	received INTEGER NOT NULL,
	document BLOB NOT NULL,
	UNIQUE (learner, run, lab)
) STRICT;
`

// messageTables were for what instructors said to learners.
const messageTables = `
CREATE TABLE messages (
	id        TEXT PRIMARY KEY,
	learner   INTEGER REFERENCES learners(id),
	kind      TEXT NOT NULL,
	text      TEXT NOT NULL,
	lab       INTEGER NOT NULL,
	sent      INTEGER NOT NULL,
	withdrawn INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE receipts (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	message TEXT NOT NULL REFERENCES messages(id),
	learner INTEGER NOT NULL REFERENCES learners(id),
	answer  TEXT NOT NULL,
	at      INTEGER NOT NULL,
	UNIQUE (message, learner, answer)
) STRICT;
`

const withoutMessages = `DROP TABLE receipts; DROP TABLE messages;`

// ErrNotFound is the error for a learner, token or result that is not there.
var ErrNotFound = errors.New("not found")

// Store is an open board. It is safe for concurrent use.
type Store struct {
	// write has one connection: SQLite has one writer, and queueing here is cheaper than waiting there.
	write, read *sql.DB
	now         func() time.Time
}

// Open opens the board in the folder dir, and makes what is missing: the folder with mode 0700, the file
// with 0600. A file of a newer version is refused.
func Open(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if err := touch(dir, path); err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	unlock, err := lock(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	defer unlock()
	s := &Store{now: time.Now}
	if s.write, err = connect(path, 1); err != nil {
		return nil, fmt.Errorf("open board %s: %w", path, err)
	}
	if err = s.prepare(ctx); err == nil {
		s.read, err = connect(path, readers)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open board %s: %w", path, err), s.Close())
	}
	return s, nil
}

// touch makes the file before SQLite does, which gives its log and index the mode of the file.
func touch(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// lock lets one process at a time open the board. SQLite does not wait when two of them turn a new file into one with
// a write-ahead log: the second is told at once that the database is locked, whatever busy_timeout says.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("wait for another process that opens %s: %w", path, err)
	}
	return func() { _ = l.Unlock() }, nil
}

func connect(path string, connections int) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	source := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// prepare makes the tables of a new file, and brings those of an older lab up to date: all of it or nothing.
func (s *Store) prepare(ctx context.Context) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		var have int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
			return fmt.Errorf("read version: %w", err)
		}
		if have > len(versions) {
			return fmt.Errorf("its version is %d, and this lab knows %d: use the checkout that made it", have, len(versions))
		}
		for _, tables := range versions[have:] {
			if _, err := tx.ExecContext(ctx, tables); err != nil {
				return fmt.Errorf("bring it up to date: %w", err)
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(versions)))
		return err
	})
}

// change runs do in one transaction.
func (s *Store) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Close closes the board. Everything accepted is on disk already.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func moment(ms int64) time.Time { return time.UnixMilli(ms) }
