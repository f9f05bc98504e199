// Package faults disturbs the manager of a check: conflicts, outages of the API server, and its own death.
package faults

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

// Injector disturbs the manager of the running check: its process, and what the API server answers to it about one
// namespace.
type Injector struct {
	proxy     *apiproxy.Proxy
	namespace string
	log       func(format string, args ...any)

	replica *env.ManagerProcess // nil until [Injector.StartReplica]

	mu        sync.Mutex
	conflicts int
	target    *env.ManagerProcess // killed after so many more writes
	moment    func(apiproxy.Request) bool
	writes    int
	killed    chan struct{}
}

// New gives a check a [Injector] for a namespace. log is called with what happens, one line at a time; nil is nobody. Faults end
// with the check, or with [Injector.Clear].
func New(namespace string, log func(format string, args ...any)) (*Injector, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	proxy, err := env.Proxy()
	if err != nil {
		return nil, err
	}
	f := &Injector{proxy: proxy, namespace: namespace, log: log}
	f.proxy.Disturb(apiproxy.Disturbance{Before: f.before, After: f.after})
	ginkgo.DeferCleanup(f.Clear)
	return f, nil
}

// Clear ends everything that was begun, and leaves the manager running.
func (f *Injector) Clear() error {
	f.proxy.Disturb(apiproxy.Disturbance{})
	f.proxy.Outage(apiproxy.NoOutage, 0)
	f.disarm()
	m := env.Manager()
	if !m.Stopped() {
		return nil
	}
	return m.Start(env.Run().MemcachedImage)
}

// Conflicts changes the object before each of the next n writes of the manager to it, as somebody else would. The API server
// then answers with a conflict, if the write says which version was read; and as with every conflict, watches tell of the
// change.
func (f *Injector) Conflicts(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conflicts = n
}

// Interfere has somebody else do something once, right before the manager's first write of a Memcached, or of its subresource. The
// API server may answer that write with a conflict. failed says what went wrong with it so far.
func (f *Injector) Interfere(m env.Memcached, subresource string, act func(context.Context) error) (failed func() error) {
	var mu sync.Mutex
	var err error
	done := false
	f.proxy.Disturb(apiproxy.Disturbance{Before: func(ctx context.Context, r apiproxy.Request) bool {
		if !r.Mutating() || r.Resource != env.Memcacheds || r.Subresource != subresource || r.Namespace != m.Namespace || r.Name != m.Name {
			return false
		}
		mu.Lock() // the others wait: what is done comes before all of them
		defer mu.Unlock()
		if done {
			return false
		}
		err, done = act(ctx), true
		return err == nil
	}})
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		return err
	}
}

// contested are the resources that somebody else may have changed in between, by the name that requests
// have for them.
var contested = map[string]func() *unstructured.Unstructured{
	env.Memcacheds:  func() *unstructured.Unstructured { return kind(suite.Group+"/v1alpha1", suite.Kind) },
	env.Deployments: func() *unstructured.Unstructured { return kind("apps/v1", "Deployment") },
}

func kind(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

// before changes the object of a write that is about to pass, if a conflict is due.
func (f *Injector) before(ctx context.Context, r apiproxy.Request) bool {
	object := contested[r.Resource]
	if object == nil || r.Namespace != f.namespace || !r.Mutating() || r.Verb != "update" && r.Verb != "patch" || !f.conflictIsDue() {
		return false
	}
	obj := object()
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.org/conflict":%q}}}`, uuid.NewUUID())
	if err := env.Admin().Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return false // the object has just gone, so the write fails anyway
	}
	f.log("%s %s is annotated a moment before your manager sends: %s %s", obj.GetKind(), r.Name, r.Verb, r.Resource)
	return true
}

func (f *Injector) conflictIsDue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conflicts--
	return f.conflicts >= 0
}

// Outage keeps the API server from the manager for a while. It does not wait for the end.
func (f *Injector) Outage(kind apiproxy.Outage, lasts time.Duration) {
	f.log("the API server is %s for %s", kind, lasts.Round(time.Millisecond))
	env.Note(trace.Storm, fmt.Sprintf("made the API server %s for %s", kind, lasts.Round(time.Millisecond)))
	f.proxy.Outage(kind, lasts)
}

// refusalLimit ends what [Injector.RefuseWrites] began, should nobody be left to do so.
const refusalLimit = 10 * time.Second

// RefuseWrites has the API server refuse writes of the manager while act runs, all ([apiproxy.ReadOnly]), those of Deployments
// ([apiproxy.NoDeployments]) or those of Memcacheds ([apiproxy.NoMemcacheds]), and after it until so many were refused, for hold
// at most. No longer: with each of them the manager waits twice as long before it tries again, and a right one, too, would be late
// in the end.
func (f *Injector) RefuseWrites(ctx context.Context, kind apiproxy.Outage, hold time.Duration, refusals int, act func() error) error {
	since := f.proxy.Count()
	f.log("the API server is %s", kind)
	f.proxy.Outage(kind, refusalLimit)
	defer f.proxy.Outage(apiproxy.NoOutage, 0)
	if err := act(); err != nil {
		return err
	}
	if err := f.awaitRefusals(ctx, hold, since, refusals); err != nil {
		return err
	}
	f.log("the API server takes writes again")
	return nil
}

// refusalPoll is how often to look for refusals. The manager tries again after 5 ms.
const refusalPoll = 10 * time.Millisecond

// awaitRefusals waits until so many writes in the namespace were refused, for hold at most.
func (f *Injector) awaitRefusals(ctx context.Context, hold time.Duration, since, refusals int) error {
	end := time.NewTimer(hold)
	defer end.Stop()
	tick := time.NewTicker(refusalPoll)
	defer tick.Stop()
	for {
		met := 0
		for _, r := range f.proxy.Since(since) {
			if r.Disturbed && r.Mutating() && r.Namespace == f.namespace {
				met++
			}
		}
		if met >= refusals {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-tick.C:
		}
	}
}

// StartReplica starts a second process of the manager's program beside the first, without leader election. It ends with the
// check.
func (f *Injector) StartReplica() error {
	replica, err := env.Manager().Replica()
	if err != nil {
		return err
	}
	f.replica = replica
	ginkgo.DeferCleanup(f.replica.Stop, ginkgo.NodeTimeout(2*env.StopTimeout))
	return f.replica.Start(env.Run().MemcachedImage)
}

// killTimeout is how long a manager that is to be killed in the middle of its work may take to begin it, on a slow machine, too.
const killTimeout = 5 * time.Second

// KillAndRestart kills the manager, or its replica, in the middle of a pass: when the API server has done the given number of
// writes for which moment is true and the process has not heard of the last one yet. After the pause it is started again. A manager that has
// nothing to write is killed all the same.
func (f *Injector) KillAndRestart(ctx context.Context, replica bool, moment func(apiproxy.Request) bool, writes int, pause time.Duration) error {
	m := env.Manager()
	if replica {
		m = f.replica
	}
	killed := f.arm(m, moment, writes)
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case <-killed:
	case <-ctx.Done():
		return ctx.Err() // Clear starts it again, if it was killed
	case <-late.C:
		if f.disarm() {
			m.Kill()
			f.log("your manager is killed, at no particular moment")
		} else {
			<-killed
		}
	}
	if err := env.Sleep(ctx, pause); err != nil {
		return err
	}
	f.log("your manager is started again")
	return m.Start(env.Run().MemcachedImage)
}

func (f *Injector) arm(m *env.ManagerProcess, moment func(apiproxy.Request) bool, writes int) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target, f.moment, f.writes, f.killed = m, moment, writes, make(chan struct{})
	return f.killed
}

// disarm lets the target live. It is false when that comes too late.
func (f *Injector) disarm() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	inTime := f.target != nil
	f.target = nil
	return inTime
}

// after kills the manager if this was the write to do so. The answer is on its way, and arrives nowhere.
func (f *Injector) after(r apiproxy.Request) {
	if r.Namespace != f.namespace || !r.Written() {
		return
	}
	if target, killed := f.countWrite(r); target != nil {
		target.Kill()
		f.log("your manager is killed before it hears that this was done: %s", r)
		close(killed)
	}
}

// countWrite counts a write, and returns the target if it was the last.
func (f *Injector) countWrite(r apiproxy.Request) (*env.ManagerProcess, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.target == nil || !f.moment(r) {
		return nil, nil
	}
	if f.writes--; f.writes > 0 {
		return nil, nil
	}
	target := f.target
	f.target = nil
	return target, f.killed
}
