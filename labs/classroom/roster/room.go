package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
)

// schema is the version of the format of room.json.
const schema = 1

// Room is who is in the room, and where their clusters are. It is written down before the first of them is made.
type Room struct {
	Schema int `json:"schema"`
	// Provider is what the clusters are made with, as --cluster calls it: kind or embedded.
	Provider string `json:"provider"`
	// Address is where the API servers answer; "" is this machine alone.
	Address string `json:"address,omitempty"`
	// Lend is how many clusters the room lends at a time for verdicts, beside those of the learners; 0 lends none.
	Lend int `json:"lend,omitempty"`
	// LendAsked says that somebody asked for that number, which therefore stays.
	LendAsked bool `json:"lendAsked,omitempty"`
	// Ready is how many more of them wait for the next borrowers, where they can wait.
	Ready int `json:"ready,omitempty"`
	// LendsOnly says that learners have no clusters of their own.
	LendsOnly bool `json:"lendsOnly,omitempty"`
	// OpenOn are the addresses of this machine on which kind clusters of the room can be, or have been, reached from a
	// network. Somebody agreed to each.
	OpenOn []string `json:"openOn,omitempty"`
	// Learners are in the order in which they came.
	Learners []Learner `json:"learners"`
}

// Learner is one of the room.
type Learner struct {
	// ID is the learner's name for folders and hosts, unique in the room.
	ID string `json:"id"`
	// Name is as the roster gives it, or the pseudonym.
	Name string `json:"name"`
	// Cluster is the name of the learner's cluster, whether it exists or not.
	Cluster string `json:"cluster"`
}

// Dir is the learner's folder in the room, whether it exists or not.
func (l Learner) Dir(state string) string { return filepath.Join(Dir(state), l.ID) }

// Kubeconfig is the path of the learner's kubeconfig, whether it exists or not. It is a link to the one that belongs
// to the cluster, so that it stays right when the cluster is made anew.
func (l Learner) Kubeconfig(state string) string { return filepath.Join(l.Dir(state), "kubeconfig") }

// Link puts the kubeconfig of the learner's cluster where [Learner.Kubeconfig] says.
func (l Learner) Link(state string) error {
	target, err := filepath.Rel(l.Dir(state), clusters.Kubeconfig(state, l.Cluster))
	if err == nil {
		err = os.MkdirAll(l.Dir(state), 0o700)
	}
	if err != nil {
		return fmt.Errorf("link the kubeconfig of %s: %w", l.ID, err)
	}
	path := l.Kubeconfig(state)
	if there, err := os.Readlink(path); err == nil && there == target {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("link the kubeconfig of %s: %w", l.ID, err)
	}
	if err := os.Symlink(target, path); err != nil {
		return fmt.Errorf("link the kubeconfig of %s: %w", l.ID, err)
	}
	return nil
}

// Dir is the folder of the room below a state directory, for the eyes of its owner alone.
func Dir(state string) string { return filepath.Join(state, "classroom") }

func file(state string) string { return filepath.Join(Dir(state), "room.json") }

// Load reads the room of a state directory. One that does not exist has no learners, and no provider.
func Load(state string) (*Room, error) {
	r := &Room{Schema: schema}
	data, err := os.ReadFile(file(state))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the room: %w", err)
	}
	if r.Schema != schema {
		return nil, fmt.Errorf("read the room: %s is not in a format of this version", file(state))
	}
	return r, nil
}

// Save writes the room down. No reader ever sees half of it, and after a crash it is there as a whole or as it was.
func (r *Room) Save(state string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(Dir(state), 0o700)
	}
	if err == nil {
		err = maybe.WriteFile(file(state), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the room down: %w", err)
	}
	return nil
}

// Forget removes what is known about the room, and its folder.
func Forget(state string) error {
	if err := os.RemoveAll(Dir(state)); err != nil {
		return fmt.Errorf("forget the room: %w", err)
	}
	return nil
}

// Grow adds pseudonyms, learner-1 and so on, until there are n learners, and returns those that came.
func (r *Room) Grow(n int) []Learner {
	before := len(r.Learners)
	for len(r.Learners) < n {
		name := r.pseudonym(nil)
		r.join(name, name)
	}
	return r.Learners[before:]
}

// Admit adds those of a roster who are not in the room yet. It returns those who came, and those who are in the room
// and not on the roster: they stay.
func (r *Room) Admit(entries []Entry) (came, others []Learner) {
	before := len(r.Learners)
	listed := map[string]bool{}
	for _, e := range entries {
		i := slices.IndexFunc(r.Learners, func(l Learner) bool { return sameAs(l, e) })
		if i < 0 {
			r.join(r.id(e, entries), e.Name)
			i = len(r.Learners) - 1
		}
		listed[r.Learners[i].ID] = true
	}
	for _, l := range r.Learners[:before] {
		if !listed[l.ID] {
			others = append(others, l)
		}
	}
	return r.Learners[before:], others
}

// sameAs says whether a learner of the room is the one on the roster. A pseudonym that was given to a name without
// letters for an id is nobody else's name.
func sameAs(l Learner, e Entry) bool {
	return strings.EqualFold(l.Name, e.Name) || e.ID != "" && slug(l.Name) == e.ID
}

// id is one for a learner who comes.
func (r *Room) id(e Entry, coming []Entry) string {
	if e.ID == "" || r.has(e.ID) {
		return r.pseudonym(coming)
	}
	return e.ID
}

func (r *Room) has(id string) bool {
	return slices.ContainsFunc(r.Learners, func(l Learner) bool { return l.ID == id })
}

// join adds a learner, whose cluster is yet to be made.
func (r *Room) join(id, name string) {
	r.Learners = append(r.Learners, Learner{ID: id, Name: name, Cluster: clusters.NewName(cli.RoomPurpose)})
}

// pseudonym is one that nobody has, and nobody who is coming: by the place in the room, if it can be.
func (r *Room) pseudonym(coming []Entry) string {
	for n := len(r.Learners) + 1; ; n++ {
		id := fmt.Sprintf("learner-%d", n)
		if !r.has(id) && !slices.ContainsFunc(coming, func(e Entry) bool { return e.ID == id }) {
			return id
		}
	}
}

// Borrowed is how many clusters there are for borrowers at most.
func (r *Room) Borrowed() int {
	if r.Lend == 0 {
		return 0
	}
	return r.Lend + r.Ready
}

// Clusters are the names of all clusters that learners have, in the learners' order. In a room that only lends there
// are none.
func (r *Room) Clusters() []string {
	if r.LendsOnly {
		return nil
	}
	names := make([]string, len(r.Learners))
	for i, l := range r.Learners {
		names[i] = l.Cluster
	}
	return names
}
