package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// Lock keeps two commands from working at the same time on what is called so. Nothing of it is left when it is released,
// so that a command that refuses has changed nothing.
func (a *App) Lock(name, what string) (unlock func(), err error) {
	path := filepath.Join(a.State, "locks", name)
	for {
		lock, err := tryLock(path)
		switch {
		case errors.Is(err, errStale):
			continue
		case err != nil:
			return nil, fmt.Errorf("lock %s: %w", what, err)
		case lock == nil:
			return nil, exit.Usage("%w on %s: wait for it to end", ErrBusy, what)
		}
		return func() { release(lock) }, nil
	}
}

// ErrBusy says that somebody else has the lock.
var ErrBusy = errors.New("another lab command is working")

// errStale says that the file that was locked is not the one that others would lock: its owner has just
// taken it away.
var errStale = errors.New("the lock was taken away")

// tryLock returns nil when somebody else has the lock.
func tryLock(path string) (*flock.Flock, error) {
	lock := flock.New(path)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	ok := false
	if err == nil {
		ok, err = lock.TryLock()
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil, errStale // a folder that another command is just taking away
	}
	if err != nil || !ok {
		return nil, err
	}
	have, err := lock.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil && os.SameFile(have, there) {
			return lock, nil
		}
	}
	_ = lock.Unlock()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil, errStale
	}
	return nil, err
}

// release takes the file away while it is still locked, and then the folders that are empty without it.
// Where an open file cannot be removed it stays, and does no harm.
func release(lock *flock.Flock) {
	path := lock.Path()
	_ = os.Remove(path)
	_ = lock.Unlock()
	for range 2 {
		path = filepath.Dir(path)
		_ = os.Remove(path)
	}
}
