package clusters

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gofrs/flock"
)

// Lease is Create for a cluster that several processes use at once, such as the tests of several packages. The first one
// makes the cluster, the others wait for it, and the last one deletes it. spec.Name is the cluster's name, and the rest of
// spec counts for the first one. Each caller calls release once, when it needs the cluster no more. While a process lives
// that did not, the cluster stays.
func (m *Manager) Lease(ctx context.Context, spec Spec) (c *Cluster, release func(context.Context) error, err error) {
	if spec.Name == "" {
		return nil, nil, errors.New("lease cluster: it needs a Spec.Name")
	}
	for {
		var lock *flock.Flock
		if c, err = m.create(ctx, spec, true); err == nil {
			lock, err = m.share(spec.Name)
		} else if errors.Is(err, errRecorded) {
			c, lock, err = m.join(ctx, spec.Name)
		}
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("lease cluster %s: %w", spec.Name, err)
		case c != nil:
			held.Store(lock, lock) // until release, whatever the caller does with that
			return c, func(ctx context.Context) error { return m.release(ctx, spec.Name, lock) }, nil
		}
		if _, err := m.Sweep(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// share lets other processes lock the record of a cluster of this one, too. Nobody else can have it meanwhile: whoever
// wants to delete a cluster locks its record within withLock.
func (m *Manager) share(name string) (lock *flock.Flock, err error) {
	lock = flock.New(m.lockFile(name))
	err = m.withLock(func() error {
		if unlock, ok := held.LoadAndDelete(m.lockFile(name)); ok {
			unlock.(func())()
		}
		return lock.RLock()
	})
	return lock, err
}

// join waits until the maker of a cluster shares it. It returns no cluster when the maker failed or died, or the last
// process that used it is just deleting it.
func (m *Manager) join(ctx context.Context, name string) (*Cluster, *flock.Flock, error) {
	record, err := m.read(name)
	if err == nil && (!record.Shared || record.Provider != m.provider.Identity()) {
		err = fmt.Errorf("%w by %s, for one process alone", errRecorded, m.path(name))
	}
	lock := flock.New(m.lockFile(name))
	if err == nil {
		_, err = lock.TryRLockContext(ctx, 100*time.Millisecond)
	}
	if err == nil {
		record, err = m.read(name)
	}
	if err == nil && record.Cluster != nil {
		return record.Cluster, lock, nil
	}
	_ = lock.Close()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, nil, err
}

// release ends one use of a cluster, and deletes it after the last one.
func (m *Manager) release(ctx context.Context, name string, lock *flock.Flock) error {
	held.Delete(lock)
	if err := lock.Close(); err != nil {
		return err
	}
	_, err := m.delete(ctx, name, true)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // another process was faster
	}
	return err
}
