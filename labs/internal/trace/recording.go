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

// File is the name of a trace in a run's artifacts. Each of its lines is an [Action].
const File = "trace.jsonl"

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

// ByCheck reads the trace at path, up to a line that a killed suite cut short. It returns the actions of each check, by its id, from
// the first one on an object until the check ended, sorted by time. The error wraps [os.ErrNotExist] when there is no trace.
func ByCheck(path string) (map[string][]Action, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer file.Close()
	var all []Action
	var a Action
	for lines := json.NewDecoder(file); lines.Decode(&a) == nil; a = (Action{}) {
		all = append(all, a)
	}
	actions := slices.DeleteFunc(slices.Clone(all), func(a Action) bool {
		// An object does not tell who deleted it. It was the manager if its delete request came just before.
		return a.Actor == You && a.Verb == "deleted" && slices.ContainsFunc(all, func(q Action) bool {
			after := a.At.Sub(q.At)
			return q.Actor == Manager && q.Verb == "deleted" && q.Kind == a.Kind && q.Namespace == a.Namespace &&
				(q.Name == "" || q.Name == a.Name) && after > 0 && after < time.Second
		})
	})
	causeFirst(actions)
	slices.SortStableFunc(actions, func(a, b Action) int { return a.At.Compare(b.At) })
	byCheck, over := map[string][]Action{}, map[string]bool{}
	for _, a := range actions {
		check := CheckOf(a.Namespace)
		if check != "" && !over[check] && (a.Kind != "" || byCheck[check] != nil) {
			byCheck[check] = append(byCheck[check], a)
			over[check] = a.Verb == ended && a.Kind == "" // what follows is its clean-up
		}
	}
	return byCheck, nil
}

// causeFirst has each Memcached begin before your manager writes what has its name. The watch of Memcacheds tells later than others at
// first: their kind is new to the cluster.
func causeFirst(actions []Action) {
	begun := map[string]bool{}
	for i, m := range actions {
		if m.Kind != "Memcached" || m.Verb != "created" || begun[m.Namespace+m.Name] {
			continue
		}
		begun[m.Namespace+m.Name] = true
		for _, a := range actions {
			if a.Actor == Manager && a.Namespace == m.Namespace && a.Name == m.Name && a.At.Before(actions[i].At) {
				actions[i].At = a.At.Add(-1)
			}
		}
	}
}

// Watcher writes the trace of a run to a file. A trace explains and never judges: what cannot be written is left out. A nil
// Watcher writes nothing.
type Watcher struct {
	end  context.CancelFunc // ends the watches
	mu   sync.Mutex
	file *os.File
}

// Watch begins a trace at path, in a cluster that c has all rights in. It records what happens in the namespaces of checks. memcached
// is the kind that the learner defines, suite the field manager of the checks. The trace ends with [Watcher.Close], not with ctx.
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
		return Manager // nobody else writes in these namespaces
	})
	batches := Stream(ctx, c, "", memcached)
	go func() {
		for batch := range batches {
			for _, o := range batch {
				if CheckOf(o.Object.GetNamespace()) != "" {
					w.write(tracker.Observe(o)...)
				}
			}
		}
	}()
	return w
}

// Join goes on with the trace at path that another process has begun, without watches of its own.
func Join(path string) *Watcher {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return &Watcher{end: func() {}, file: file}
}

// End writes that the check of a namespace has ended. What follows is its clean-up.
func (w *Watcher) End(namespace string) { w.Note(namespace, "the check", ended) }

// Note writes what was done to the manager, or what it did as a process, while the check of the namespace ran.
func (w *Watcher) Note(namespace, actor, text string) {
	w.write(Action{At: time.Now(), Namespace: namespace, Actor: actor, Verb: text})
}

// kinds are those of resources that operators of the course write.
var kinds = map[string]string{"memcacheds": "Memcached", "deployments": "Deployment", "services": "Service", "events": "event"}

// Add writes what a manager sent, as far as no watch shows it. A process of a run does so once, at its end.
func (w *Watcher) Add(requests []apiproxy.Request) {
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
			kind := strings.TrimSuffix(cmp.Or(kinds[q.Resource], q.Resource)+"/"+q.Subresource, "/")
			w.write(Action{q.Time, Manager, verb, kind, cmp.Or(q.Object, q.Name), detail, q.Namespace})
		}
	}
}

// Close ends the trace.
func (w *Watcher) Close() {
	if w != nil {
		w.end()
		_ = w.file.Close() // later lines are lost, as they should be
	}
}

func (w *Watcher) write(actions ...Action) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range actions {
		_ = json.NewEncoder(w.file).Encode(a)
	}
}
