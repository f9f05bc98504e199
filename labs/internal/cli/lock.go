package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// ErrBusy says that somebody else has the lock.
var ErrBusy = errors.New("another lab command is working")

// Lock keeps two commands from working at the same time on what is called so. The lock's file stays in the state folder; the kernel
// releases it with the process.
func (a *App) Lock(name, what string) (unlock func(), err error) {
	dir := filepath.Join(a.State, "locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	lock := flock.New(filepath.Join(dir, name))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", what, err)
	case !ok:
		return nil, exit.Usage("%w on %s: wait for it to end", ErrBusy, what)
	}
	return func() { _ = lock.Unlock() }, nil
}
