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

	"github.com/example/operator-lab/labs/harness/recorder"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// StormLong is the value of [Config.Storm] for a storm of several rounds with two managers at once.
	StormLong = "long"
)

// Sky is the weather between the manager and the API server, as far as one namespace is concerned.
type Sky struct {
	env       *testEnv
	namespace string
	tell      func(format string, args ...any)

	mu        sync.Mutex
	conflicts int
	victim    *Manager // killed after so many more writes
	writes    int
	killed    chan struct{}
}

// Weather gives a check power over the weather. tell is called with what happens, one line at a time. The sky clears when
// the check ends, or with [Sky.Clear].
func Weather(namespace string, tell func(format string, args ...any)) (*Sky, error) {
	if suite.env == nil {
		return nil, errors.New("this run has no manager")
	}
	s := &Sky{env: suite.env, namespace: namespace, tell: tell}
	s.env.proxy.Disturb(recorder.Disturbance{Before: s.before, After: s.after})
	ginkgo.DeferCleanup(s.Clear)
	return s, nil
}

// Clear ends everything that was begun, and leaves the manager running.
func (s *Sky) Clear() error {
	s.env.proxy.Disturb(recorder.Disturbance{})
	s.env.proxy.Outage(recorder.Calm, 0)
	s.holdFire()
	if m := s.env.manager; m.stopped() {
		return m.Start(suite.config.MemcachedImage)
	}
	return nil
}

// Conflicts lets the next n writes of the manager to an object come too late: somebody else has just
// changed that object. It is the API server that answers with a conflict then, to those who told it
// what they had read; and as with every conflict, there is news of the object.
func (s *Sky) Conflicts(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts = n
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
func (s *Sky) before(ctx context.Context, r recorder.Request) bool {
	object := contested[r.Resource]
	if object == nil || r.Namespace != s.namespace || r.Verb != "update" && r.Verb != "patch" || !s.conflictIsDue() {
		return false
	}
	obj := object()
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.org/storm":%q}}}`, uuid.NewUUID())
	if err := suite.admin.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return false // it has just gone, so that the write will fail for a better reason
	}
	s.tell("%s %s is annotated a moment before your manager sends: %s %s", obj.GetKind(), r.Name, r.Verb, r.Resource)
	return true
}

func (s *Sky) conflictIsDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts--
	return s.conflicts >= 0
}

// Outage keeps the API server from the manager for a while. It does not wait for the end.
func (s *Sky) Outage(kind recorder.Outage, lasts time.Duration) {
	s.tell("the API server is %s for %s", kind, lasts.Round(time.Millisecond))
	s.env.note(trace.Storm, fmt.Sprintf("made the API server %s for %s", kind, lasts.Round(time.Millisecond)))
	s.env.proxy.Outage(kind, lasts)
}

// readOnlyLimit ends what [Sky.ReadOnly] began, should nobody be left to do so.
const readOnlyLimit = 10 * time.Second

// ReadOnly has the API server refuse all writes of the manager while act runs, and after it until so many were
// refused, for hold at most. No longer: with each of them the manager waits twice as long before it tries
// again, and a right one, too, would be late in the end.
func (s *Sky) ReadOnly(ctx context.Context, hold time.Duration, refusals int, act func() error) error {
	since := s.env.proxy.Count()
	s.tell("the API server is %s", recorder.ReadOnly)
	s.env.proxy.Outage(recorder.ReadOnly, readOnlyLimit)
	defer s.env.proxy.Outage(recorder.Calm, 0)
	if err := act(); err != nil {
		return err
	}
	if err := s.awaitRefusals(ctx, hold, since, refusals); err != nil {
		return err
	}
	s.tell("the API server takes writes again")
	return nil
}

// refusalPoll is how often to look for refusals. The manager tries again after 5 ms.
const refusalPoll = 10 * time.Millisecond

// awaitRefusals waits until so many writes in the storm's namespace were refused, for hold at most.
func (s *Sky) awaitRefusals(ctx context.Context, hold time.Duration, since, refusals int) error {
	end := time.NewTimer(hold)
	defer end.Stop()
	tick := time.NewTicker(refusalPoll)
	defer tick.Stop()
	for {
		met := 0
		for _, r := range s.env.proxy.Since(since) {
			if r.Disturbed && r.Mutating() && r.Namespace == s.namespace {
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

// killPatience is how long a manager that is to be killed in the middle of its work may take to begin it.
const killPatience = time.Second

// KillAndRestart kills m in the middle of a pass: when the API server has done the given number of its
// writes and m has not heard of the last one yet. After the pause m is started again. A manager that has
// nothing to write is killed all the same.
func (s *Sky) KillAndRestart(ctx context.Context, m *Manager, writes int, pause time.Duration) error {
	killed := s.aim(m, writes)
	impatient := time.NewTimer(killPatience)
	defer impatient.Stop()
	select {
	case <-killed:
	case <-ctx.Done():
		return ctx.Err() // Clear starts it again, if it was killed
	case <-impatient.C:
		if s.holdFire() {
			m.Kill()
			s.tell("your manager is killed, at no particular moment")
		} else {
			<-killed
		}
	}
	if err := Throughout(ctx, pause, func() error { return nil }); err != nil {
		return err
	}
	s.tell("your manager is started again")
	return m.Start(suite.config.MemcachedImage)
}

func (s *Sky) aim(m *Manager, writes int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.victim, s.writes, s.killed = m, writes, make(chan struct{})
	return s.killed
}

// holdFire lets the victim live. It is false when that comes too late.
func (s *Sky) holdFire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	inTime := s.victim != nil
	s.victim = nil
	return inTime
}

// after kills the manager if this was the write to do so. The answer is on its way, and arrives nowhere.
func (s *Sky) after(r recorder.Request) {
	if contested[r.Resource] == nil || r.Namespace != s.namespace || !r.Mutating() || r.Refused() || r.Disturbed {
		return
	}
	if victim, killed := s.hit(); victim != nil {
		victim.Kill()
		s.tell("your manager is killed before it hears that this was done: %s", r)
		close(killed)
	}
}

// hit counts a write, and returns the victim if it was the last.
func (s *Sky) hit() (*Manager, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes--
	if s.victim == nil || s.writes > 0 {
		return nil, nil
	}
	victim := s.victim
	s.victim = nil
	return victim, s.killed
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
