package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/plain"
)

// File is the name of a recording in a run's artifacts. Each of its lines is a part of the [Recording].
const File = "trace.jsonl"

// Recording is what was written down during a run of the suite.
type Recording struct {
	// Actions are those in the namespaces of checks, in any order.
	Actions []Action `json:"actions,omitempty"`
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
		all.Actions, all.Tallies = append(all.Actions, part.Actions...), append(all.Tallies, part.Tallies...)
	}
	return &all, nil
}

// NamespacePrefix begins the names of the namespaces that checks work in. The check's id follows, and random letters.
const NamespacePrefix = "lab-"

var checkNamespace = regexp.MustCompile(`^` + NamespacePrefix + `(.+)-[a-z0-9]{5}$`)

// CheckOf is the id of the check that a namespace was made for, "" when it was made for none.
func CheckOf(namespace string) string {
	if m := checkNamespace.FindStringSubmatch(namespace); m != nil {
		return m[1]
	}
	return ""
}

// ended is the verb of a check that ends.
const ended = "ended"

// ByCheck are the actions of each check, by its id, from the first one on an object until the check ended, sorted by time.
func (r *Recording) ByCheck() map[string][]Action {
	actions := slices.DeleteFunc(slices.Clone(r.Actions), func(a Action) bool {
		// Nobody's name is on a deletion. It is the manager's if it asked for it just before.
		return a.Actor == You && a.Verb == "deleted" && slices.ContainsFunc(r.Actions, func(q Action) bool {
			after := a.At.Sub(q.At)
			return q.Actor == Manager && q.Verb == "deleted" && q.Kind == strings.ToLower(a.Kind)+"s" && q.Namespace == a.Namespace &&
				(q.Name == "" || q.Name == a.Name) && after > 0 && after < time.Second
		})
	})
	slices.SortStableFunc(actions, func(a, b Action) int { return a.At.Compare(b.At) })
	byCheck, over := map[string][]Action{}, map[string]bool{}
	for _, a := range actions {
		check := CheckOf(a.Namespace)
		if check != "" && !over[check] && (a.Kind != "" || byCheck[check] != nil) {
			byCheck[check] = append(byCheck[check], a)
			over[check] = a.Verb == ended && a.Kind == "" // what follows is its clean-up
		}
	}
	return byCheck
}

// Watcher writes the trace of a run to a file. A trace explains and never judges: what cannot be written is left out. A nil
// Watcher writes nothing.
type Watcher struct {
	end  context.CancelFunc // ends the watches
	mu   sync.Mutex
	file *os.File
}

// Watch begins a trace at path, in a cluster that c has all rights in. It tells what happens in the namespaces of checks. memcached is
// the kind that the learner defines, suite the field manager of the checks. The trace ends with [Watcher.Close], not with ctx.
func Watch(ctx context.Context, c client.WithWatch, path string, memcached schema.GroupVersionKind, suite string) *Watcher {
	w := Join(path)
	if w == nil {
		return nil
	}
	ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	tracker := NewTracker(func(fieldManager string) string {
		switch {
		case fieldManager == suite:
			return You
		case strings.HasPrefix(fieldManager, "kube"), fieldManager == "kwok":
			return fieldManager
		}
		return Manager // nobody else is there
	})
	batches := Stream(ctx, c, "", memcached)
	go func() {
		for batch := range batches {
			for _, o := range batch {
				if CheckOf(o.Object.GetNamespace()) != "" {
					w.write(Recording{Actions: tracker.Observe(o)})
				}
			}
		}
	}()
	return w
}

// Join goes on with the trace at path that another process has begun, for what this process knows of.
func Join(path string) *Watcher {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return &Watcher{end: func() {}, file: file}
}

// End writes that the check of a namespace has seen what it wanted to see. What follows is its clean-up.
func (w *Watcher) End(namespace string) { w.Note(namespace, "the check", ended) }

// Note writes what was done to the manager, or what it did as a process, while the check of the namespace ran.
func (w *Watcher) Note(namespace, actor, text string) {
	w.write(Recording{Actions: []Action{{At: time.Now(), Namespace: namespace, Actor: actor, Verb: text}}})
}

// Add writes what a manager sent, as far as no watch shows it, and how often. A process of a run does so once, at its end.
func (w *Watcher) Add(requests []apiproxy.Request, tallies []apiproxy.Tally) {
	r := Recording{Tallies: tallies}
	for _, q := range requests {
		verb, detail := strings.TrimSuffix(strings.TrimSuffix(q.Verb, "collection"), "e")+"ed", ""
		watched := slices.Contains([]string{"memcacheds", "deployments", "replicasets", "pods", "events"}, q.Resource)
		switch {
		case q.Refused() || q.Disturbed:
			verb, detail = "could not "+q.Verb, ": "+plain.Short(cmp.Or(q.Message, fmt.Sprintf("answer %d", q.Status)), quoted)
		case watched && verb != "deleted":
			continue
		}
		if q.Mutating() {
			kind := strings.TrimSuffix(q.Resource+"/"+q.Subresource, "/")
			r.Actions = append(r.Actions, Action{q.Time, Manager, verb, kind, cmp.Or(q.Object, q.Name), detail, q.Namespace})
		}
	}
	w.write(r)
}

// Close ends the trace.
func (w *Watcher) Close() {
	if w != nil {
		w.end()
		_ = w.file.Close() // later lines are lost, as they should be
	}
}

func (w *Watcher) write(r Recording) {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = json.NewEncoder(w.file).Encode(r)
	}
}
