package trace

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// merger turns a recording into actions. What the watches saw says what was done; the manager's own
// requests say when exactly, and the rest: what was refused, and what changed nothing.
type merger struct {
	suite        string
	observations []Observation // in order, with the times of the answers to the manager
	requests     []Request
	ended        map[string]time.Time // when the check of a namespace ended
	sent         map[string]int       // index of the request that made a version of an object
	shown        map[string]time.Time // when a watch delivered a version
}

func newMerger(r *Recording) *merger {
	t := &merger{
		suite: r.Suite, observations: slices.Clone(r.Observations), requests: r.Requests, ended: r.Ended,
		sent: map[string]int{}, shown: map[string]time.Time{},
	}
	t.match()
	InOrder(t.observations)
	return t
}

// kinds are those that the watches show, by the resource that a request names.
var kinds = map[string]string{
	"memcacheds": "Memcached", "deployments": "Deployment", "replicasets": "ReplicaSet", "pods": "Pod", "events": "Event",
}

// match finds the observation that each request led to, by the resourceVersion in its answer, and gives it the
// time of the answer. A observation that was there before the request is nobody's: the request then changed
// nothing.
func (t *merger) match() {
	made := map[string]int{}
	for i, s := range t.observations {
		key := versionOf(s)
		made[key], t.shown[key] = i, s.At
	}
	for n, r := range t.requests {
		key := r.version()
		i, ok := made[key]
		if !ok || t.shown[key].Before(r.Time) {
			continue
		}
		if _, taken := t.sent[key]; !taken {
			t.sent[key] = n
			t.observations[i].At = earliest(t.observations[i].At, r.done())
		}
	}
	t.matchDeletions()
}

// matchDeletions does the same for deletions, whose answers carry no version that a watch shows.
func (t *merger) matchDeletions() {
	type object struct{ kind, namespace, name string }
	gone := map[object][]*Observation{}
	for i := range t.observations {
		if s := &t.observations[i]; s.Deleted {
			of := object{KindOf(s.Object), s.Object.GetNamespace(), s.Object.GetName()}
			gone[of] = append(gone[of], s)
		}
	}
	for n, r := range t.requests {
		if r.Verb != "delete" || r.Status >= http.StatusBadRequest {
			continue
		}
		those := gone[object{kinds[r.Resource], r.Namespace, r.Name}]
		if i := slices.IndexFunc(those, func(s *Observation) bool { return !s.At.Before(r.Time) }); i >= 0 {
			t.sent[versionOf(*those[i])] = n
			those[i].At = earliest(those[i].At, r.done())
		}
	}
}

// versionOf names one version of one object. The API server counts all of them with one counter.
func versionOf(s Observation) string {
	return KindOf(s.Object) + " " + s.Object.GetNamespace() + " " + s.Object.GetResourceVersion()
}

// version is the one that the answer showed, as [versionOf] names it.
func (r Request) version() string {
	return kinds[r.Resource] + " " + r.Namespace + " " + r.ResourceVersion
}

// done is when the API server had done what was asked: what came before it in its own count is no later.
func (r Request) done() time.Time {
	if r.Answered.IsZero() {
		return r.Time
	}
	return r.Answered
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// actions are all that were seen or requested, in the order of their time.
func (t *merger) actions() []Action {
	m := NewMemory(t.actor)
	var actions []Action
	inSight := map[int]bool{}       // requests that a watch shows
	made := map[int]client.Object{} // what requests led to that is not shown
	for _, s := range t.observations {
		n, sent := t.sent[versionOf(s)]
		of := m.Take(s)
		if sent {
			inSight[n], made[n] = len(of) > 0, s.Object
		}
		for _, d := range of {
			if sent && (d.Actor == nobody || s.Deleted) {
				d.Actor = Manager
			}
			actions = append(actions, d)
		}
	}
	for n, r := range t.requests {
		if d := t.request(n, r); !inSight[n] && d.Verb != "" {
			if m, ok := made[n].(*unstructured.Unstructured); ok && r.Subresource == "status" && Available(m).Status != "" {
				d.Detail = fmt.Sprintf(": %s%s (%s)", available, Available(m).Status, clip(Available(m).Message))
			}
			actions = append(actions, d)
		}
	}
	slices.SortStableFunc(actions, func(a, b Action) int { return a.At.Compare(b.At) })
	return actions
}

// playedBy is the program that plays the kubelet where a cluster has no nodes.
const playedBy = "kwok"

// actor resolves the actors of a run: the checks act as you, and whoever is not a part of Kubernetes is the
// manager, as nobody else is there.
func (t *merger) actor(fieldManager string) string {
	switch {
	case fieldManager == t.suite || strings.HasPrefix(fieldManager, "kubectl"):
		return You
	case strings.HasPrefix(fieldManager, "kube"), fieldManager == playedBy:
		return fieldManager
	default:
		return Manager
	}
}

// verbs are what a request did, in the words of the other actions.
var verbs = map[string][2]string{
	"create": {"created", "failed to create"},
	"update": {"changed", "failed to change"},
	"patch":  {"changed", "failed to change"},
	"delete": {"removed", "failed to remove"},
	// One that deletes them all is rare enough to be shown as it is.
	"deletecollection": {"removed all", "failed to remove all"},
}

// request is the action of a request that no object shows: it was refused, changed what no watch shows, or
// changed nothing. A request that is not worth a line is an action without a verb.
func (t *merger) request(n int, r Request) Action {
	d := Action{At: r.done(), Actor: Manager, Count: 1, Of: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, Times: r.Times - 1, Last: r.Until}
	if r.Object != "" {
		d.Of.Name = r.Object
	}
	d.Kind, d.Name = kinds[r.Resource], d.Of.Name
	if d.Kind == "" {
		d.Kind = r.Resource
	}
	if r.Subresource != "" {
		d.Kind = "the " + r.Subresource + " of " + d.Kind
	}
	refused := r.Status >= http.StatusBadRequest || r.Disturbed
	if r.Resource == "events" {
		if !refused {
			return Action{} // a watch shows it, or it was counted
		}
		d.Kind, d.Name = "an event", ""
	}
	words, ok := verbs[r.Verb]
	switch {
	case !ok:
		return Action{}
	case refused:
		d.Verb, d.Detail = words[1], ": "+refusal(r)
		return d
	}
	d.Verb = words[0]
	if t.changedNothing(n, r) {
		d.Verb, d.Detail = "wrote", " as it was"
	}
	return d
}

// changedNothing says whether the answer shows a version that was there before the request.
func (t *merger) changedNothing(n int, r Request) bool {
	if r.Verb != "update" && r.Verb != "patch" || r.ResourceVersion == "" || r.Status >= http.StatusBadRequest {
		return false
	}
	if maker, ok := t.sent[r.version()]; ok {
		return maker != n
	}
	at, ok := t.shown[r.version()]
	return ok && at.Before(r.Time)
}

// Unneeded are the manager's writes that changed nothing. The API server drops them; they cost a
// request.
func (r *Recording) Unneeded() []Request {
	t := newMerger(r)
	var unneeded []Request
	for n, request := range t.requests {
		if t.changedNothing(n, request) {
			unneeded = append(unneeded, request)
		}
	}
	return unneeded
}

// refusal is why a request was refused, in few words where they say the same.
func refusal(r Request) string {
	switch {
	case r.Disturbed:
		return "refused by the check"
	case r.Status == http.StatusConflict && strings.Contains(r.Message, "already exists"):
		return "it exists already"
	case r.Status == http.StatusConflict:
		return "a conflict, it has changed since it was read"
	case r.Status == http.StatusNotFound:
		return "it is not there"
	case r.Message == "":
		return fmt.Sprintf("the API server answered %d", r.Status)
	default:
		return clip(r.Message)
	}
}
