package trace

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

const (
	// perObject is how many changes of one object are written down. A right operator needs twenty; the
	// rest of a loop's thousands would only say the same.
	perObject = 200
	// perRequest is the same for requests of one verb to one object.
	perRequest = 50
	// sizeLimit bounds the file, and the memory of who reads it, however many objects there are. A run of one lab needs four
	// megabytes.
	sizeLimit = 16 << 20
	// objectLimit is how long an object may be. One of the course has some kilobytes.
	objectLimit = 64 << 10
	// closeLimit is how long the watches may take to end. They end at once.
	closeLimit = time.Second
)

// Watcher writes down what happens to the objects of the checks, in a file. It keeps nothing but counts
// in memory. A trace explains and never judges: whatever goes wrong with it, it is only left out. A nil
// Watcher is one that records nothing.
type Watcher struct {
	cancel  context.CancelFunc
	watches sync.WaitGroup

	mu      sync.Mutex
	file    *os.File
	ignored sets.Set[string] // namespaces
	changes map[types.UID]*Omission
}

// Watch begins a recording at path, in a cluster that c has all rights in. What happens in namespaces
// that exist already is not recorded, except in default. memcached is the kind that the learner defines;
// where it is not served, nothing is seen of it. suite is the field manager of the checks. The recording
// ends with [Watcher.Close], not with ctx.
func Watch(ctx context.Context, c client.WithWatch, path string, memcached schema.GroupVersionKind, suite string) *Watcher {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	w := &Watcher{file: file, ignored: sets.New[string](), changes: map[types.UID]*Omission{}}
	for _, ns := range namespaces.Items {
		w.ignored.Insert(ns.Name)
	}
	w.ignored.Delete(metav1.NamespaceDefault) // where an operator writes that forgot the namespace
	w.write(entry{At: time.Now(), Suite: suite})
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	memcacheds := &unstructured.UnstructuredList{}
	memcacheds.SetGroupVersionKind(memcached.GroupVersion().WithKind(memcached.Kind + "List"))
	for _, list := range []client.ObjectList{
		memcacheds, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &eventsv1.EventList{},
	} {
		w.watches.Go(func() { w.watch(ctx, c, list) })
	}
	return w
}

// Join goes on with the recording at path that another process has begun, for notes and requests that this one knows of.
func Join(path string) *Watcher {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return &Watcher{cancel: func() {}, file: file}
}

// watch writes down what a watch of list delivers, from the objects that are there already on.
func (w *Watcher) watch(ctx context.Context, c client.WithWatch, list client.ObjectList) {
	changes, err := c.Watch(ctx, list)
	if err != nil {
		return
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case change, open := <-changes.ResultChan():
			if !open {
				return
			}
			if object, ok := change.Object.(client.Object); ok {
				w.see(Observation{At: time.Now(), Object: object, Deleted: change.Type == watch.Deleted})
			}
		}
	}
}

// see writes down an observation, unless there were too many of its kind.
func (w *Watcher) see(s Observation) {
	if !w.wanted(s) {
		return
	}
	data, err := json.Marshal(shorten(s.Object))
	if err != nil || len(data) > objectLimit {
		return
	}
	w.write(entry{At: s.At, Object: data, Deleted: s.Deleted})
}

func (w *Watcher) wanted(s Observation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ns := s.Object.GetNamespace()
	if w.ignored.Has(ns) || w.full() {
		return false
	}
	o := w.changes[s.Object.GetUID()]
	if o == nil {
		o = &Omission{Kind: KindOf(s.Object), Namespace: ns, Name: s.Object.GetName()}
		w.changes[s.Object.GetUID()] = o
	}
	o.Changes++
	return o.Changes <= perObject || s.Deleted
}

// End writes down that the check of a namespace has seen what it wanted to see.
func (w *Watcher) End(namespace string) {
	if w == nil {
		return
	}
	w.write(entry{At: time.Now(), Ended: namespace})
}

// Note writes down what was done to the manager, or what it did as a process, while the check of the namespace ran.
func (w *Watcher) Note(namespace, actor, text string) {
	if w == nil {
		return
	}
	w.write(entry{At: time.Now(), Note: &Note{Namespace: namespace, Actor: actor, Text: text}})
}

// Add writes down what a manager sent, and how often. A process of a run does so once, at its end.
func (w *Watcher) Add(requests []apiproxy.Request, tallies []apiproxy.Tally) {
	if w == nil {
		return
	}
	for _, r := range inShort(requests) {
		if w.full() {
			break // a manager can name things with a kilobyte each, thousands of times, in each process
		}
		w.write(entry{At: r.Time, Request: &r})
	}
	for _, t := range tallies {
		w.write(entry{At: time.Now(), Tally: &t})
	}
}

// full says whether the file, to which other processes add, has reached its limit.
func (w *Watcher) full() bool {
	info, err := w.file.Stat()
	return err != nil || info.Size() >= sizeLimit
}

// Close ends the recording.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	w.cancel()
	ended := make(chan struct{})
	go func() { w.watches.Wait(); close(ended) }()
	timeout := time.NewTimer(closeLimit)
	defer timeout.Stop()
	select {
	case <-ended:
	case <-timeout.C:
	}
	w.mu.Lock()
	changes := w.changes
	w.changes = nil
	w.mu.Unlock()
	for _, o := range changes {
		if o.Changes -= perObject; o.Changes > 0 {
			w.write(entry{At: time.Now(), Omitted: o})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.file.Close() // later lines are lost, as they should be
}

func (w *Watcher) write(e entry) {
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.file.Write(append(line, '\n'))
}

// inShort are the requests that asked for a change. Of a long row of the same, the first are kept, and
// the last of those stands for the rest.
func inShort(requests []apiproxy.Request) []Request {
	type same struct{ verb, resource, subresource, namespace, name string }
	count, last := map[same]int{}, map[same]int{}
	var result []Request
	for _, r := range requests {
		if !r.Mutating() {
			continue
		}
		key := same{r.Verb, r.Resource, r.Subresource, r.Namespace, r.Name}
		if count[key]++; count[key] <= perRequest {
			last[key] = len(result)
			result = append(result, Request{Request: r, Times: 1})
			continue
		}
		result[last[key]].Times++
		result[last[key]].Until = r.Time
	}
	return result
}
