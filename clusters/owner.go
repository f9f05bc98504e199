package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
)

// Owner is the record of one cluster: what it is for and who answers for it. It
// exists before the cluster does and goes after it.
type Owner struct {
	Schema int    `json:"schema"`
	Name   string `json:"name"`
	// Provider is the identity of the provider, such as "kind/docker".
	Provider string `json:"provider"`
	Purpose  string `json:"purpose"`
	// PID is the number of the process that made the cluster or keeps it, for people to read: it means something in that
	// process's own PID namespace alone.
	PID int `json:"pid"`
	// Kept says that the cluster outlives its process. It turns true when the
	// cluster is ready, so that a half-made one is nobody's wish.
	Kept    bool      `json:"kept"`
	Created time.Time `json:"created"`
	// Claimed is when somebody took the cluster that had been made for nobody yet. It happens once.
	Claimed *time.Time `json:"claimed,omitempty"`
	// Cluster describes the cluster once it is ready, and is nil before.
	Cluster *Cluster `json:"cluster,omitempty"`

	alive bool
}

// Alive says whether the process that made the cluster was running when the record was read.
func (o Owner) Alive() bool { return o.alive }

// Abandoned says that nobody wants the cluster any more: it was not to be kept,
// and its process has ended.
func (o Owner) Abandoned() bool { return !o.Kept && !o.alive }

// ownerSchema is the version of the format of owner.json.
const ownerSchema = 1

func (o *Owned) path(name string) string {
	return filepath.Join(Dir(o.state, name), "owner.json")
}

// write puts the record on disk and returns when it is there for good: a
// cluster of which nothing is written down could never be found again.
func (o *Owned) write(owner Owner) error {
	data, err := json.MarshalIndent(owner, "", "  ")
	if err == nil {
		err = MakeDir(o.state, owner.Name)
	}
	if err == nil {
		err = maybe.WriteFile(o.path(owner.Name), append(data, '\n'), 0o600)
	}
	if err == nil {
		// Neither the file's entry in its folder nor the folder's own must be lost.
		err = errors.Join(syncDir(Dir(o.state, owner.Name)), syncDir(filepath.Join(o.state, "clusters")))
	}
	if err != nil {
		return fmt.Errorf("record cluster %s: %w", owner.Name, err)
	}
	return nil
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems cannot sync a folder, and then there is nothing to wait for.
	_ = file.Sync()
	return file.Close()
}

// The process that made a cluster holds a lock in the folder of its record for as long as it lives. The kernel lets go of
// it when the process ends, however that happens, and knows nothing of PID namespaces.
func (o *Owned) lockFile(name string) string { return filepath.Join(Dir(o.state, name), "lock") }

// held has the locks of this process by their files. They belong to the process, not to an Owned: no lock may go with a
// value that nobody needs any more.
var held sync.Map // of func()

// withLock calls f while no other process makes, reads or removes a record of this state directory. f has to be quick.
func (o *Owned) withLock(f func() error) error {
	file := filepath.Join(o.state, "clusters", ".lock")
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
func (o *Owned) tryLock(name string) (unlock func(), locked bool, err error) {
	l := flock.New(o.lockFile(name))
	locked, err = l.TryLock()
	return func() { _ = l.Close() }, locked, err
}

// readAlive is read for somebody who is within withLock, and wants to know whether the owner lives.
func (o *Owned) readAlive(name string) (Owner, error) {
	owner, err := o.read(name)
	if err != nil {
		return owner, err
	}
	unlock, dead, err := o.tryLock(name)
	if err != nil {
		return owner, fmt.Errorf("read record of cluster %s: %w", name, err)
	}
	unlock()
	owner.alive = !dead
	return owner, nil
}

// read returns the record of a cluster, and leaves open whether its owner lives; the error is fs.ErrNotExist when there
// is none.
func (o *Owned) read(name string) (Owner, error) {
	data, err := os.ReadFile(o.path(name))
	if err != nil {
		return Owner{}, err
	}
	var owner Owner
	if err := json.Unmarshal(data, &owner); err != nil {
		return Owner{}, fmt.Errorf("read %s: %w", o.path(name), err)
	}
	if owner.Schema != ownerSchema || owner.Name != name {
		return Owner{}, fmt.Errorf("read %s: it does not describe cluster %s in a format of this version", o.path(name), name)
	}
	return owner, nil
}

// List returns the records of all clusters of this state directory, sorted by
// name, those of other processes and providers included. With an error it
// returns what could be read.
func (o *Owned) List(context.Context) ([]Owner, error) {
	entries, err := os.ReadDir(filepath.Join(o.state, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var owners []Owner
	err = o.withLock(func() error {
		var errs []error
		for _, entry := range entries {
			if !entry.IsDir() {
				continue
			}
			switch owner, err := o.readAlive(entry.Name()); {
			case err == nil:
				owners = append(owners, owner)
			case !errors.Is(err, fs.ErrNotExist):
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	slices.SortFunc(owners, func(a, b Owner) int { return strings.Compare(a.Name, b.Name) })
	return owners, err
}
