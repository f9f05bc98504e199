package goproxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Files of a checksum database.
const (
	keyFile = "key" // the signer's key and the verifier's, a line each
	logFile = "go.sum"
	useLock = "lock"
)

// ErrInUse says that another process serves the checksum database.
var ErrInUse = errors.New("another process serves this checksum database")

// Sums is a checksum database of the room's own: it vouches for what the cache of this machine has, by a signature
// whose key the learners have from their handout. The Go command never takes a toolchain without such a database, and
// the public one is on the internet.
//
// A database only ever grows, and a Go command that finds it changed speaks of an attack; so it is kept in a folder,
// and its name is new with every key.
type Sums struct {
	name, signer, verifier string
	server                 http.Handler
	lock                   *flock.Flock
	log                    *os.File
	size                   int64 // of the log, in bytes

	mu      sync.Mutex
	look    func(module.Version) ([]byte, error) // the record of a version, from the cache
	hashes  hashes                               // of the tree
	records [][]byte
	ids     map[module.Version]int64
}

// hashes are those of a tree, as package tlog counts them.
type hashes []tlog.Hash

func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, 0, len(indexes))
	for _, i := range indexes {
		if i < 0 || i >= int64(len(h)) {
			return nil, fs.ErrNotExist
		}
		list = append(list, h[i])
	}
	return list, nil
}

// Key is what the Go command needs to know of the database in dir, as the value of GOSUMDB. It makes the key when there
// is none yet; whoever has the folder can sign in its name, so it is for its owner alone.
func Key(dir string) (string, error) {
	_, verifier, err := keys(dir)
	return verifier, err
}

func keys(dir string) (signer, verifier string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = makeKeys(dir)
	}
	if err != nil {
		return "", "", fmt.Errorf("read key of the checksum database: %w", err)
	}
	signer, verifier, _ = strings.Cut(strings.TrimSpace(string(data)), "\n")
	if _, err := note.NewVerifier(verifier); err != nil {
		return "", "", fmt.Errorf("read key of the checksum database: %s: %w", filepath.Join(dir, keyFile), err)
	}
	return signer, verifier, nil
}

// makeKeys makes the key, or finds the one of a process that was faster.
func makeKeys(dir string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	signer, verifier, err := note.GenerateKey(rand.Reader, "operator-lab-room-"+hex.EncodeToString(id[:]))
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, keyFile+"-") // 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // its other name stays
	_, err = fmt.Fprintf(f, "%s\n%s\n", signer, verifier)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	// A link, unlike a rename, replaces nothing.
	if err := os.Link(f.Name(), filepath.Join(dir, keyFile)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, keyFile))
}

// OpenSums opens the database in dir, and makes it when there is none. One process at a time may: two would tell two
// histories. Another one's is [ErrInUse]. Close it after use.
func OpenSums(dir string) (*Sums, error) {
	signer, verifier, err := keys(dir)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(verifier, "+")
	s := &Sums{
		name: name, signer: signer, verifier: verifier,
		lock: flock.New(filepath.Join(dir, useLock)), ids: map[module.Version]int64{},
	}
	s.server = sumdb.NewServer(s)
	switch held, err := s.lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock checksum database: %w", err)
	case !held:
		return nil, ErrInUse
	}
	if err := s.read(filepath.Join(dir, logFile)); err != nil {
		return nil, errors.Join(fmt.Errorf("read checksum database: %w", err), s.Close())
	}
	return s, nil
}

// Key is what the Go command needs to know of the database, as the value of GOSUMDB.
func (s *Sums) Key() string { return s.verifier }

// Close ends the use of the database.
func (s *Sums) Close() error {
	err := s.lock.Close()
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	return err
}

// read reads the log: a record is two lines. What a crash has cut off was not shown to anybody, and goes.
func (s *Sums) read(path string) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept := 0
	for {
		end := kept
		for range 2 {
			line := bytes.IndexByte(data[end:], '\n')
			if line < 0 {
				end = -1
				break
			}
			end += line + 1
		}
		if end < 0 {
			break
		}
		m, err := recorded(data[kept:end])
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := s.grow(m, data[kept:end]); err != nil {
			return err
		}
		kept = end
	}
	if s.log, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	s.size = int64(kept)
	return s.log.Truncate(s.size)
}

// recorded is the version that a record is about.
func recorded(record []byte) (module.Version, error) {
	fields := strings.Fields(string(record))
	if len(fields) != 6 || fields[0] != fields[3] || fields[1]+"/go.mod" != fields[4] {
		return module.Version{}, fmt.Errorf("%q is no record", record)
	}
	return module.Version{Path: fields[0], Version: fields[1]}, nil
}

// grow adds a record to the tree.
func (s *Sums) grow(m module.Version, record []byte) (int64, error) {
	id := int64(len(s.records))
	added, err := tlog.StoredHashesForRecordHash(id, tlog.RecordHash(record), s.hashes)
	if err != nil {
		return 0, fmt.Errorf("add %s to the checksum database: %w", m, err)
	}
	s.records, s.hashes, s.ids[m] = append(s.records, record), append(s.hashes, added...), id
	return id, nil
}

// serve makes look the source of records that the database does not have yet.
func (s *Sums) serve(look func(module.Version) ([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look = look
}

// Signed is the signed state of the database. This and the next three are what [sumdb.Server] asks.
func (s *Sums) Signed(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := int64(len(s.records))
	hash, err := tlog.TreeHash(size, s.hashes)
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(s.signer)
	if err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: string(tlog.FormatTree(tlog.Tree{N: size, Hash: hash}))}, signer)
}

// ReadRecords returns n records from id on.
func (s *Sums) ReadRecords(_ context.Context, id, n int64) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 0 || n < 0 || n > int64(len(s.records)) || id > int64(len(s.records))-n {
		return nil, fs.ErrNotExist
	}
	return s.records[id : id+n], nil
}

// Lookup returns the id of a version's record, which is written to the log before anybody hears of it.
func (s *Sums) Lookup(_ context.Context, m module.Version) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.ids[m]; ok {
		return id, nil
	}
	if s.look == nil {
		return 0, fs.ErrNotExist
	}
	record, err := s.look(m)
	if err != nil {
		return 0, fs.ErrNotExist // the cache has it not, or not in order
	}
	if err := s.keep(record); err != nil {
		return 0, fmt.Errorf("write checksum database: %w", err)
	}
	return s.grow(m, record)
}

// keep writes a record to the log, all of it or nothing.
func (s *Sums) keep(record []byte) error {
	_, err := s.log.Write(record)
	if err == nil {
		err = s.log.Sync()
	}
	if err != nil {
		return errors.Join(err, s.log.Truncate(s.size))
	}
	s.size += int64(len(record))
	return nil
}

// tileHeight is the height of the tiles that Go commands ask for. One of height 30 would take 40 GB.
const tileHeight = 8

// ReadTileData returns a tile of the tree.
func (s *Sums) ReadTileData(_ context.Context, t tlog.Tile) ([]byte, error) {
	if t.H != tileHeight {
		return nil, fs.ErrNotExist
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return tlog.ReadTileData(t, s.hashes)
}

// serveSums answers what is asked below /sumdb/. A database that is not ours gets 404, upon which the Go command
// asks that database itself.
func (p *Proxy) serveSums(w http.ResponseWriter, r *http.Request, path string) {
	sums := p.options.Sums
	if sums == nil {
		notFound(w)
		return
	}
	rest, ok := strings.CutPrefix(path, sums.name+"/")
	if !ok {
		notFound(w)
		return
	}
	w.Header().Set("Cache-Control", "no-store") // it grows
	if rest == "supported" {
		w.WriteHeader(http.StatusOK)
		return
	}
	http.StripPrefix("/sumdb/"+sums.name, sums.server).ServeHTTP(w, r)
}
