package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// Observation is what a watch delivered: an object as it is now, or as it was last.
type Observation struct {
	At      time.Time
	Object  *unstructured.Unstructured
	Deleted bool
}

// kinds are Kubernetes' own that a trace is about.
var kinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Version: "v1", Kind: "Pod"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
}

// Stream watches Deployments, ReplicaSets, Pods, Events and more in a namespace, "" for all. It delivers every 150 ms what was
// seen, in the order in which the API server did it. A watch that fails is begun anew. The channel is closed when ctx ends, and
// has to be read until then.
func Stream(ctx context.Context, c client.WithWatch, namespace string, more ...schema.GroupVersionKind) <-chan []Observation {
	seen, batches := make(chan Observation), make(chan []Observation)
	for _, kind := range slices.Concat(kinds, more) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			changes, err := c.Watch(ctx, list, client.InNamespace(namespace))
			if err != nil {
				return
			}
			defer context.AfterFunc(ctx, changes.Stop)()
			for change := range changes.ResultChan() {
				if object, ok := change.Object.(*unstructured.Unstructured); ok && change.Type != watch.Error {
					select {
					case seen <- Observation{time.Now(), object, change.Type == watch.Deleted}:
					case <-ctx.Done():
						return
					}
				}
			}
		}, mergeWindow)
	}
	go func() {
		defer close(batches)
		var batch []Observation
		for tick := time.Tick(mergeWindow); ctx.Err() == nil; {
			select {
			case o := <-seen:
				batch = append(batch, o)
				continue
			case <-tick:
			case <-ctx.Done():
			}
			if len(batch) > 0 {
				batches <- inOrder(batch)
			}
			batch = nil
		}
	}()
	return batches
}

// inOrder sorts by the API server's own counter, which all its objects share. An object was seen no later than what came after it.
func inOrder(batch []Observation) []Observation {
	slices.SortStableFunc(batch, func(a, b Observation) int {
		left, _ := strconv.ParseUint(a.Object.GetResourceVersion(), 10, 64)
		right, _ := strconv.ParseUint(b.Object.GetResourceVersion(), 10, 64)
		return cmp.Compare(left, right)
	})
	for i := len(batch) - 1; i > 0; i-- {
		if batch[i].At.Before(batch[i-1].At) {
			batch[i-1].At = batch[i].At
		}
	}
	return batch
}

// Watcher writes the trace of a run to a file. A trace explains and never judges: what cannot be written is left out. A nil
// Watcher writes nothing.
type Watcher struct {
	end     context.CancelFunc // ends the watches
	written sync.WaitGroup     // of what they delivered

	mu   sync.Mutex
	file *os.File
}

// Watch begins a trace at path, in a cluster that c has all rights in. It tells what happens in the namespaces of checks, and in
// default, where an operator writes that forgot the namespace. memcached is the kind that the learner defines, suite the field manager
// of the checks. The trace ends with [Watcher.Close], not with ctx.
func Watch(ctx context.Context, c client.WithWatch, path string, memcached schema.GroupVersionKind, suite string) *Watcher {
	w := open(path, os.O_CREATE)
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
		default:
			return Manager // nobody else is there
		}
	})
	batches := Stream(ctx, c, "", memcached)
	w.written.Go(func() {
		for batch := range batches {
			for _, o := range batch {
				if ns := o.Object.GetNamespace(); CheckOf(ns) != "" || ns == metav1.NamespaceDefault {
					for _, a := range tracker.Observe(o) {
						w.write(Recording{Actions: []Action{a}})
					}
				}
			}
		}
	})
	return w
}

// Join goes on with the trace at path that another process has begun, for what this process knows of.
func Join(path string) *Watcher { return open(path, 0) }

func open(path string, create int) *Watcher {
	file, err := os.OpenFile(path, create|os.O_APPEND|os.O_WRONLY, 0o600)
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

// Add writes what a manager sent, and how often. A process of a run does so once, at its end.
func (w *Watcher) Add(requests []apiproxy.Request, tallies []apiproxy.Tally) {
	writes := slices.DeleteFunc(requests, func(q apiproxy.Request) bool { return !q.Mutating() })
	w.write(Recording{Requests: writes, Tallies: tallies})
}

// Close ends the trace.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	w.end()
	w.written.Wait()
	_ = w.file.Close() // later lines are lost, as they should be
}

func (w *Watcher) write(r Recording) {
	if w == nil {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.file.Write(append(line, '\n'))
}
