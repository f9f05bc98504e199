package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/plain"
)

// File is the name of a recording in a run's artifacts. Each of its lines is a part of the [Recording].
const File = "trace.jsonl"

// Recording is what was written down during a run of the suite.
type Recording struct {
	// Actions are what watches showed, and what happened to managers and checks.
	Actions []Action `json:"actions,omitempty"`
	// Requests are the manager's that asked for a change, in the order of each of its processes.
	Requests []apiproxy.Request `json:"requests,omitempty"`
	// Tallies are how often the manager sent each kind of request.
	Tallies []apiproxy.Tally `json:"tallies,omitempty"`
}

// ReadFile reads the recording at path, up to a line that a killed suite cut short. The error wraps [os.ErrNotExist] when there is
// none.
func ReadFile(path string) (*Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer file.Close()
	var all, part Recording
	for lines := json.NewDecoder(file); lines.Decode(&part) == nil; part = (Recording{}) {
		all.Actions = append(all.Actions, part.Actions...)
		all.Requests = append(all.Requests, part.Requests...)
		all.Tallies = append(all.Tallies, part.Tallies...)
	}
	return &all, nil
}

// Unneeded are the manager's writes that changed nothing: the API server answers them with a version that was there before.
func (r *Recording) Unneeded() (unneeded []apiproxy.Request) {
	known := map[string]time.Time{}
	for _, a := range r.Actions {
		if known[a.Version].IsZero() || a.At.Before(known[a.Version]) {
			known[a.Version] = a.At
		}
	}
	for _, q := range r.Requests {
		if q.Verb != "update" && q.Verb != "patch" || q.ResourceVersion == "" || q.Status >= http.StatusBadRequest {
			continue
		}
		if at := known[q.ResourceVersion]; !at.IsZero() && at.Before(q.Time) {
			unneeded = append(unneeded, q)
		} else {
			known[q.ResourceVersion] = q.Time // a later request with this answer changes nothing
		}
	}
	return unneeded
}

// table is all actions that are worth a line, sorted by time: those that watches showed, and of the manager's requests those that
// they do not show.
func (r *Recording) table() []Action {
	unneeded, table := sets.New(r.Unneeded()...), slices.Clone(r.Actions)
	for _, q := range r.Requests {
		name := q.Resource + "/" + cmp.Or(q.Object, q.Name) // as kubectl says it
		if q.Subresource != "" {
			name = "the " + q.Subresource + " of " + name
		}
		a := Action{At: q.Time, Actor: Manager, Kind: name, Namespace: q.Namespace, Object: cmp.Or(q.Object, q.Name)}
		switch {
		case q.Refused() || q.Disturbed:
			a.Verb, a.Detail = "could not "+q.Verb, ": "+plain.Short(cmp.Or(q.Message, fmt.Sprintf("answer %d", q.Status)), quoted)
		case unneeded.Has(q):
			a.Verb, a.Detail = "wrote", " as it was"
		case !slices.Contains([]string{"memcacheds", "deployments", "replicasets", "pods", "events"}, q.Resource):
			a.Verb = strings.TrimSuffix(q.Verb, "e") + "ed"
		case strings.HasPrefix(q.Verb, "delete"):
			// Nobody's name is on a deletion. This is the manager's if it asked for it just before.
			for i, d := range table {
				after := d.At.Sub(q.Time)
				if d.Actor == You && d.Verb == "deleted" && strings.EqualFold(d.Kind+"s", q.Resource) && d.Namespace == q.Namespace &&
					(q.Name == "" || d.Name == q.Name) && after > 0 && after < time.Second {
					table[i].Actor = Manager
				}
			}
		}
		table = append(table, a)
	}
	table = slices.DeleteFunc(table, func(a Action) bool { return a.Verb == "" })
	slices.SortStableFunc(table, func(a, b Action) int { return a.At.Compare(b.At) })
	return table
}
