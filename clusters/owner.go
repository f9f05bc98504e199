package clusters

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/clusters/internal/process"
)

// Owner is the record of one cluster: what it is for and which process answers
// for it. It exists before the cluster does and goes after it.
type Owner struct {
	Schema int    `json:"schema"`
	Name   string `json:"name"`
	// Provider is the identity of the provider, such as "kind/docker".
	Provider string     `json:"provider"`
	Purpose  string     `json:"purpose"`
	Process  process.ID `json:"process"`
	// Kept says that the cluster outlives its process. It turns true when the
	// cluster is ready, so that a half-made one is nobody's wish.
	Kept    bool      `json:"kept"`
	Created time.Time `json:"created"`
	// Claimed is when somebody took the cluster that had been made for nobody yet. It happens once.
	Claimed *time.Time `json:"claimed,omitempty"`
	// Cluster describes the cluster once it is ready, and is nil before.
	Cluster *Cluster `json:"cluster,omitempty"`
}

// Alive says whether the process that made the cluster still runs.
func (o Owner) Alive() bool { return o.Process.Alive() }

// Abandoned says that nobody wants the cluster any more: it was not to be kept,
// and its process has ended.
func (o Owner) Abandoned() bool { return !o.Kept && !o.Alive() }

// ownerSchema is the version of the format of owner.json.
const ownerSchema = 1

// records are the owner.json files under a state directory.
type records struct{ state string }

func (r records) path(name string) string {
	return filepath.Join(Dir(r.state, name), "owner.json")
}

// write puts the record on disk and returns when it is there for good: a
// cluster of which nothing is written down could never be found again.
func (r records) write(o Owner) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err == nil {
		err = MakeDir(r.state, o.Name)
	}
	if err == nil {
		err = writeSynced(r.path(o.Name), append(data, '\n'))
	}
	if err == nil {
		// The folder's own entry must not be lost either.
		err = syncDir(filepath.Join(r.state, "clusters"))
	}
	if err != nil {
		return fmt.Errorf("record cluster %s: %w", o.Name, err)
	}
	return nil
}

// writeSynced replaces path as a whole, so that no reader sees half of it, and returns when it is on the disk.
func writeSynced(path string, data []byte) error {
	if err := maybe.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
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

// read returns the record of a cluster; the error is fs.ErrNotExist when there
// is none.
func (r records) read(name string) (Owner, error) {
	data, err := os.ReadFile(r.path(name))
	if err != nil {
		return Owner{}, err
	}
	var o Owner
	if err := json.Unmarshal(data, &o); err != nil {
		return Owner{}, fmt.Errorf("read %s: %w", r.path(name), err)
	}
	if o.Schema != ownerSchema || o.Name != name {
		return Owner{}, fmt.Errorf("read %s: it does not describe cluster %s in a format of this version", r.path(name), name)
	}
	return o, nil
}

// list returns all records by name. A record that cannot be read is part of the
// error and does not hide the others.
func (r records) list() ([]Owner, error) {
	entries, err := os.ReadDir(filepath.Join(r.state, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var owners []Owner
	var errs []error
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		switch o, err := r.read(entry.Name()); {
		case err == nil:
			owners = append(owners, o)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	slices.SortFunc(owners, func(a, b Owner) int { return strings.Compare(a.Name, b.Name) })
	return owners, errors.Join(errs...)
}

// remove takes the record and the folder of a cluster away.
func (r records) remove(name string) error {
	if err := os.RemoveAll(Dir(r.state, name)); err != nil {
		return fmt.Errorf("remove record of cluster %s: %w", name, err)
	}
	return nil
}
