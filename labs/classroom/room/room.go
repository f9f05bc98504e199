// Package room keeps one cluster for each learner of a classroom.
package room

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
)

// FileName is where a room is remembered, below the state folder.
const FileName = "room.json"

// Room is who has a cluster.
type Room struct {
	// Provider makes all clusters: kind or embedded.
	Provider string `json:"provider"`
	// Address is where their API servers answer, "" for this machine alone.
	Address  string    `json:"address,omitempty"`
	Learners []Learner `json:"learners"`
}

// Learner is somebody with a cluster.
type Learner struct {
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	// Free says that nobody has joined as this learner, whose name is a number.
	Free bool `json:"free,omitempty"`
}

// Load reads the room; where there is none, nobody is in it.
func Load(state string) (*Room, error) {
	r := &Room{}
	data, err := os.ReadFile(filepath.Join(state, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	return r, err
}

// Update changes the room as it is on the disk now. One process at a time does.
func Update(state string, change func(*Room) error) (*Room, error) {
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(state, FileName+".lock"))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	r, err := Load(state)
	if err == nil {
		err = change(r)
	}
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = maybe.WriteFile(filepath.Join(state, FileName), append(data, '\n'), 0o600)
	}
	return r, err
}

// Number adds learners until there are n of them.
func (r *Room) Number(n int) {
	for i := 1; len(r.Learners) < n; i++ {
		r.add(fmt.Sprintf("learner-%d", i), true)
	}
}

// Name adds the learners whose names are the lines of a file.
func (r *Room) Name(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff")); name != "" {
			r.add(name, false)
		}
	}
	return lines.Err()
}

func (r *Room) add(name string, free bool) {
	if r.Find(name) == nil {
		r.Learners = append(r.Learners, Learner{Name: name, Cluster: clusters.NewName(cli.RoomLabel), Free: free})
	}
}

// Find is the learner of that name, nil if there is none.
func (r *Room) Find(name string) *Learner {
	i := slices.IndexFunc(r.Learners, func(l Learner) bool { return strings.EqualFold(l.Name, name) })
	if i < 0 {
		return nil
	}
	return &r.Learners[i]
}

// Join gives somebody the learner of their name, or the next one that is free; nil if there is none.
func (r *Room) Join(name string) *Learner {
	if l := r.Find(name); l != nil {
		l.Free = false
		return l
	}
	i := slices.IndexFunc(r.Learners, func(l Learner) bool { return l.Free })
	if i < 0 {
		return nil
	}
	r.Learners[i].Name, r.Learners[i].Free = name, false
	return &r.Learners[i]
}

// Owners are the records of clusters, by name.
func Owners(ctx context.Context, owned *clusters.Manager) (map[string]clusters.Record, error) {
	all, err := owned.List(ctx)
	owners := map[string]clusters.Record{}
	for _, o := range all {
		owners[o.Name] = o
	}
	return owners, err
}

// Up makes the clusters that are missing, as many at once as there are cores. One that cannot be made keeps nobody else from theirs.
// tell gets a line for each.
func (r *Room) Up(ctx context.Context, owned *clusters.Manager, spec clusters.Spec, tell func(name, what string)) error {
	owners, err := Owners(ctx, owned)
	if err != nil {
		return err
	}
	errs := make([]error, len(r.Learners))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, l := range r.Learners {
		if o, there := owners[l.Cluster]; there && o.Kept || ctx.Err() != nil {
			continue
		}
		group.Go(func() error {
			tell(l.Name, "creating")
			spec := spec
			spec.Name, spec.Label, spec.Keep = l.Cluster, cli.RoomLabel, true
			if _, err := owned.Create(ctx, spec); err != nil {
				errs[i] = fmt.Errorf("%s: %w", l.Name, err)
			} else {
				tell(l.Name, "ready")
			}
			return nil
		})
	}
	_ = group.Wait() // errs has them all
	return errors.Join(errs...)
}

const (
	mega = 1 << 20
	// kindMemory is what an idle cluster takes: 370 to 540 MiB were seen (docs/performance.md). An embedded one has 485 MB after its
	// start, and collects its garbage late.
	kindMemory, embeddedMemory = 450 * mega, 600 * mega
	// reserve is for a board, a browser, and somebody who compiles.
	reserve = 1024 * mega
	// perCore is how many idle clusters a core bears; each takes about a twentieth of one.
	perCore = 10
)

// Fits is how many more clusters this machine has room for, and what there is too little of for another one. free is its memory, in bytes.
func Fits(embedded bool, free uint64, there int) (more int, short string) {
	each := uint64(kindMemory)
	if embedded {
		each = embeddedMemory
	}
	more, short = 0, "memory"
	if free > reserve {
		more = int((free - reserve) / each)
	}
	if cores := max(0, perCore*runtime.GOMAXPROCS(0)-there); cores < more {
		more, short = cores, "processor cores"
	}
	return more, short
}
