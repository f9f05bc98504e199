package clusters

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/clusters/internal/layout"
)

// Record says what a cluster is for and who answers for it. It exists before the cluster does and goes after it.
type Record struct {
	Schema int    `json:"schema"`
	Name   string `json:"name"`
	// Provider is the identity of the provider, such as "kind/docker".
	Provider string `json:"provider"`
	// Label is [Spec.Label].
	Label string `json:"purpose"`
	// PID is the number of the process that made the cluster, for people to read: it means something in that process's
	// own PID namespace alone.
	PID int `json:"pid"`
	// Shared says that the cluster is one of [Manager.Lease]. It outlives its maker while another process uses it.
	Shared bool `json:"shared,omitempty"`
	// Kept says that the cluster outlives its process. It turns true when the cluster is ready, so that nobody keeps a
	// half-made one.
	Kept    bool      `json:"kept"`
	Created time.Time `json:"created"`
	// Cluster describes the cluster once it is ready, and is nil before.
	Cluster *Cluster `json:"cluster,omitempty"`

	alive bool
}

// Alive says whether the process that made the cluster was running when the record was read.
func (r Record) Alive() bool { return r.alive }

// recordSchema is the version of the format of owner.json.
const recordSchema = 1

func (m *Manager) path(name string) string {
	return filepath.Join(layout.Dir(m.state, name), "owner.json")
}

// The process that made a cluster holds a lock in the folder of its record for as long as it lives. The kernel lets go of
// it when the process ends, however that happens, and knows nothing of PID namespaces.
func (m *Manager) lockFile(name string) string {
	return filepath.Join(layout.Dir(m.state, name), "lock")
}

// errRecorded is the [ErrExists] of a name that this state directory has a record of.
var errRecorded = fmt.Errorf("%w, recorded", ErrExists)

// held has the locks of this process: of clusters that it made a func() by the lock's file, of leases the lock itself. They
// belong to the process: no lock may go with a Manager that nobody needs any more.
var held sync.Map

// claim writes the record of a cluster that is about to be made. Of several processes that want the same name, one gets
// it.
func (m *Manager) claim(spec Spec, shared bool) (record Record, err error) {
	name := spec.Name
	if err := layout.CheckName(name); err != nil {
		return Record{}, err
	}
	record = Record{
		Schema: recordSchema, Name: name, Provider: m.provider.Identity(), Label: spec.Label, Shared: shared,
		PID: os.Getpid(), Created: time.Now().UTC().Truncate(time.Second),
	}
	err = m.withLock(func() error {
		if _, err := m.read(name); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w by %s", errRecorded, m.path(name))
		}
		if err := layout.MakeDir(m.state, name); err != nil {
			return err
		}
		unlock, locked, err := m.tryLock(name)
		if err == nil && !locked {
			err = ErrExists
		}
		if err == nil {
			err = m.write(record)
		}
		if err != nil {
			unlock()
			return err
		}
		held.Store(m.lockFile(name), unlock)
		return nil
	})
	if err != nil {
		return Record{}, fmt.Errorf("create cluster %s: %w", name, err)
	}
	return record, nil
}

func (m *Manager) write(record Record) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = maybe.WriteFile(m.path(record.Name), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record cluster %s: %w", record.Name, err)
	}
	return nil
}

// forget calls remove, which removes the record of a cluster, and lets go of its lock.
func (m *Manager) forget(name string, remove func(name string) error) error {
	if err := m.withLock(func() error { return remove(name) }); err != nil {
		return fmt.Errorf("remove record of cluster %s: %w", name, err)
	}
	if unlock, ok := held.LoadAndDelete(m.lockFile(name)); ok {
		unlock.(func())()
	}
	return nil
}

// unclaim removes what claim wrote, and nothing that somebody else may have in that folder.
func (m *Manager) unclaim(name string) error {
	err := errors.Join(os.Remove(m.path(name)), os.Remove(m.lockFile(name)))
	_ = os.Remove(layout.Dir(m.state, name)) // fails when there is more in it
	return err
}

// withLock calls f while no other process makes, reads or removes a record of this state directory. f has to be quick.
func (m *Manager) withLock(f func() error) error {
	file := filepath.Join(m.state, "clusters", ".lock")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	l := flock.New(file)
	if err := l.Lock(); err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	return f()
}

// tryLock locks a record, unless the process that made the cluster lives.
func (m *Manager) tryLock(name string) (unlock func(), locked bool, err error) {
	l := flock.New(m.lockFile(name))
	locked, err = l.TryLock()
	return func() { _ = l.Close() }, locked, err
}

// readAlive is read for somebody who is within withLock, and wants to know whether the owner lives.
func (m *Manager) readAlive(name string) (Record, error) {
	record, err := m.read(name)
	if err != nil {
		return record, err
	}
	unlock, dead, err := m.tryLock(name)
	if err != nil {
		return record, fmt.Errorf("read record of cluster %s: %w", name, err)
	}
	unlock()
	record.alive = !dead
	return record, nil
}

// read returns the record of a cluster, and leaves open whether its owner lives; the error is fs.ErrNotExist when there
// is none.
func (m *Manager) read(name string) (Record, error) {
	data, err := os.ReadFile(m.path(name))
	if err != nil {
		return Record{}, err
	}
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		return Record{}, fmt.Errorf("read %s: %w", m.path(name), err)
	}
	if record.Schema != recordSchema || record.Name != name {
		return Record{}, fmt.Errorf("read %s: it does not describe cluster %s in a format of this version", m.path(name), name)
	}
	return record, nil
}
