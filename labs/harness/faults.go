package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// StormLong is the value of [Config.Storm] for a storm of several rounds with two managers at once.
	StormLong = "long"
)

// FaultInjector disturbs the manager of the running check: its process, and what the API server answers to it about one
// namespace.
type FaultInjector struct {
	env       *testEnv
	namespace string
	log       func(format string, args ...any)

	mu        sync.Mutex
	conflicts int
	target    *Manager // killed after so many more writes
	writes    int
	killed    chan struct{}
}

// InjectFaults gives a check a [FaultInjector] for a namespace. log is called with what happens, one line at a time. Faults end
// with the check, or with [FaultInjector.Clear].
func InjectFaults(namespace string, log func(format string, args ...any)) (*FaultInjector, error) {
	if suite.env == nil {
		return nil, errors.New("this run has no manager")
	}
	f := &FaultInjector{env: suite.env, namespace: namespace, log: log}
	f.env.proxy.Disturb(apiproxy.Disturbance{Before: f.before, After: f.after})
	ginkgo.DeferCleanup(f.Clear)
	return f, nil
}

// Clear ends everything that was begun, and leaves the manager running.
func (f *FaultInjector) Clear() error {
	f.env.proxy.Disturb(apiproxy.Disturbance{})
	f.env.proxy.Outage(apiproxy.NoOutage, 0)
	f.disarm()
	if m := f.env.manager; m.stopped() {
		return m.Start(suite.config.MemcachedImage)
	}
	return nil
}

// Conflicts lets the next n writes of the manager to an object come too late: somebody else has just
// changed that object. It is the API server that answers with a conflict then, to those who told it
// what they had read; and as with every conflict, there is news of the object.
func (f *FaultInjector) Conflicts(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conflicts = n
}

// contested are the resources that somebody else may have changed in between, by the name that requests
// have for them.
var contested = map[string]func() *unstructured.Unstructured{
	"memcacheds":  func() *unstructured.Unstructured { return Memcached{}.object() },
	"deployments": func() *unstructured.Unstructured { return kind("apps/v1", "Deployment") },
}

func kind(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

// before changes the object of a write that is about to pass, if a conflict is due.
func (f *FaultInjector) before(ctx context.Context, r apiproxy.Request) bool {
	object := contested[r.Resource]
	if object == nil || r.Namespace != f.namespace || r.Verb != "update" && r.Verb != "patch" || !f.conflictIsDue() {
		return false
	}
	obj := object()
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.org/storm":%q}}}`, uuid.NewUUID())
	if err := suite.admin.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return false // it has just gone, so that the write will fail for a better reason
	}
	f.log("%s %s is annotated a moment before your manager sends: %s %s", obj.GetKind(), r.Name, r.Verb, r.Resource)
	return true
}

func (f *FaultInjector) conflictIsDue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conflicts--
	return f.conflicts >= 0
}

// Outage keeps the API server from the manager for a while. It does not wait for the end.
func (f *FaultInjector) Outage(kind apiproxy.Outage, lasts time.Duration) {
	f.log("the API server is %s for %s", kind, lasts.Round(time.Millisecond))
	f.env.note(trace.Storm, fmt.Sprintf("made the API server %s for %s", kind, lasts.Round(time.Millisecond)))
	f.env.proxy.Outage(kind, lasts)
}

// readOnlyLimit ends what [FaultInjector.ReadOnly] began, should nobody be left to do so.
const readOnlyLimit = 10 * time.Second

// ReadOnly has the API server refuse all writes of the manager while act runs, and after it until so many were
// refused, for hold at most. No longer: with each of them the manager waits twice as long before it tries
// again, and a right one, too, would be late in the end.
func (f *FaultInjector) ReadOnly(ctx context.Context, hold time.Duration, refusals int, act func() error) error {
	since := f.env.proxy.Count()
	f.log("the API server is %s", apiproxy.ReadOnly)
	f.env.proxy.Outage(apiproxy.ReadOnly, readOnlyLimit)
	defer f.env.proxy.Outage(apiproxy.NoOutage, 0)
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

// awaitRefusals waits until so many writes in the storm's namespace were refused, for hold at most.
func (f *FaultInjector) awaitRefusals(ctx context.Context, hold time.Duration, since, refusals int) error {
	end := time.NewTimer(hold)
	defer end.Stop()
	tick := time.NewTicker(refusalPoll)
	defer tick.Stop()
	for {
		met := 0
		for _, r := range f.env.proxy.Since(since) {
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

// killTimeout is how long a manager that is to be killed in the middle of its work may take to begin it.
const killTimeout = time.Second

// KillAndRestart kills m in the middle of a pass: when the API server has done the given number of its
// writes and m has not heard of the last one yet. After the pause m is started again. A manager that has
// nothing to write is killed all the same.
func (f *FaultInjector) KillAndRestart(ctx context.Context, m *Manager, writes int, pause time.Duration) error {
	killed := f.arm(m, writes)
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
	if err := Throughout(ctx, pause, func() error { return nil }); err != nil {
		return err
	}
	f.log("your manager is started again")
	return m.Start(suite.config.MemcachedImage)
}

func (f *FaultInjector) arm(m *Manager, writes int) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target, f.writes, f.killed = m, writes, make(chan struct{})
	return f.killed
}

// disarm lets the target live. It is false when that comes too late.
func (f *FaultInjector) disarm() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	inTime := f.target != nil
	f.target = nil
	return inTime
}

// after kills the manager if this was the write to do so. The answer is on its way, and arrives nowhere.
func (f *FaultInjector) after(r apiproxy.Request) {
	if contested[r.Resource] == nil || r.Namespace != f.namespace || !r.Mutating() || r.Refused() || r.Disturbed {
		return
	}
	if target, killed := f.countWrite(); target != nil {
		target.Kill()
		f.log("your manager is killed before it hears that this was done: %s", r)
		close(killed)
	}
}

// countWrite counts a write, and returns the target if it was the last.
func (f *FaultInjector) countWrite() (*Manager, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes--
	if f.target == nil || f.writes > 0 {
		return nil, nil
	}
	target := f.target
	f.target = nil
	return target, f.killed
}

// AwaitCollector waits until the garbage collector knows Memcacheds. It looks for new kinds every 30 s
// only; until then nothing goes with its owner, and nobody can be blamed for that.
func AwaitCollector(ctx context.Context, namespace string) error {
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "of-nobody",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: "nobody", UID: uuid.NewUUID(),
		}},
	}}
	if err := suite.admin.Create(ctx, orphan); err != nil {
		return fmt.Errorf("create a child of nobody: %w", err)
	}
	return Until(ctx, CollectBudget, &corev1.ConfigMapList{}, func() error {
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the garbage collector does not know Memcacheds yet"), err)
	}, client.InNamespace(namespace))
}
