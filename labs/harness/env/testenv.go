package env

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/loopback"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

// testEnv is what a Ginkgo process has for itself: a process of the learner's manager, and the proxy that it goes through.
// A check may stop and restart it, and disturb the proxy; the checks of other processes do not notice.
type testEnv struct {
	proxy    *apiproxy.Proxy
	manager  *ManagerProcess
	registry *registry.Registry // nil when no lab of the run needs it
	activity *activityMonitor
	trace    *trace.Watcher
	forget   context.CancelFunc // ends the activity monitor
	workers  int                // how often the manager's log said [workersLine] before its last start
}

// openTestEnv starts the proxy, and the manager with its identity, and returns when the manager knows what there is. known is
// what its program has said already, nil when nobody has asked.
func openTestEnv(ctx context.Context, w *trace.Watcher, known *program) (*testEnv, error) {
	process, total := ginkgo.GinkgoParallelProcess(), processes()
	token, err := requestToken(ctx)
	if err != nil {
		return nil, err
	}
	proxy, err := apiproxy.Start(current.adminConfig, token,
		namespaceFilter(hiddenFrom(process, total, current.shared.Run, current.config.Checks)))
	if err != nil {
		return nil, err
	}
	watching, forget := context.WithCancel(context.Background())
	e := &testEnv{proxy: proxy, trace: w, activity: newActivityMonitor(proxy.Since), forget: forget}
	e.activity.follow(watching, current.admin)
	if len(current.config.Registry) > 0 {
		addresses, err := loopback.Free(1)
		if err == nil {
			e.registry, err = registry.Start(addresses[0], nil)
		}
		if err != nil {
			return nil, errors.Join(err, e.close(ctx))
		}
	}
	e.manager, err = newManager(proxy, managerLog(process), known)
	if err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	e.manager.starts, e.manager.note = func() { e.restarts(); e.releaseLeases() }, e.note
	if err := e.manager.Start(current.config.MemcachedImage); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	e.awaitCaches(ctx)
	return e, nil
}

// processes is how many Ginkgo processes share the checks of this run.
func processes() int {
	c, _ := ginkgo.GinkgoConfiguration()
	return c.ParallelTotal
}

// awaitCaches returns when the manager knows what there is, so that the checks' objects are news to it. What a manager
// finds when it starts, controller-runtime's queue serves after all news, and while many checks make some, a slow one
// does not come to it (https://github.com/kubernetes-sigs/controller-runtime/issues/3496). It waits for [silenceTimeout] at
// most; what is wrong with a manager that fails, the checks report.
func (e *testEnv) awaitCaches(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for listening := time.Duration(0); e.gone() == nil && !e.knows(listening); {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.activity.listens() {
			listening += pollInterval
		}
	}
}

// restore brings back the manager as a check of lab n expects it, whatever the check before has left: running, with the
// run's image, and told of the registry if that lab has one. One that ended by itself stays away: the checks say so.
func (e *testEnv) restore(ctx context.Context, n int) error {
	var wanted *registry.Registry
	if slices.Contains(current.config.Registry, n) {
		wanted = e.registry
	}
	if e.manager.runs(current.config.MemcachedImage) && e.manager.registry == wanted {
		return nil
	}
	e.manager.registry = wanted
	return e.manager.Restart(ctx, current.config.MemcachedImage)
}

// workersLine is what controller-runtime's log says when the caches are filled.
const workersLine = "Starting workers"

// knows says whether the manager has filled its caches, after it has asked for what they hold for so long.
func (e *testEnv) knows(listening time.Duration) bool {
	return e.workersLines() > e.workers || listening > cacheTimeout
}

func (e *testEnv) workersLines() int { return len(e.manager.output.Lines(workersLine)) }

// restarts is told that the manager is about to be started.
func (e *testEnv) restarts() {
	e.activity.restart()
	e.workers = e.workersLines()
}

// releaseTimeout bounds [testEnv.releaseLeases].
const releaseTimeout = 2 * time.Second

// releaseLeases gives back the leases that the manager held when it ended, for a manager that elects a leader whatever its
// flags say: it would wait until the lease of the dead process expires, after 15 seconds. A program that asks for a lease
// is judged by one process, so nobody else holds it. What goes wrong here only costs that wait.
func (e *testEnv) releaseLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	released := map[client.ObjectKey]bool{}
	for _, r := range e.proxy.Since(0) {
		key := client.ObjectKey{Namespace: r.Namespace, Name: cmp.Or(r.Name, r.Object)}
		if r.Group != coordinationv1.GroupName || r.Resource != "leases" || !r.Written() || r.Status >= http.StatusMultipleChoices || released[key] {
			continue
		}
		released[key] = true
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		_ = current.admin.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":null}}`)))
	}
}

// note adds what happened to the manager to the trace of the running check, in whichever of its namespaces a reader looks.
func (e *testEnv) note(actor, text string) {
	for _, namespace := range running().allNamespaces() {
		e.trace.Note(namespace, actor, text)
	}
}

// gone is the finding about a manager that cannot do its work: it ended, or it runs and has asked the
// API server for nothing since it was started.
func (e *testEnv) gone() *finding.Finding {
	if f := e.manager.gone(); f != nil {
		return f
	}
	if e.manager.Running() < silenceTimeout || e.proxy.Count() > e.manager.requestsBefore() {
		return nil
	}
	return finding.New(suite.CauseManagerSilent, "the manager reads Memcacheds from the API server",
		"it has been running for %s and has not sent one request: does it start a controller?", silenceTimeout)
}

// idle is for how long nothing has happened in any of the namespaces while the manager was running.
func (e *testEnv) idle(namespaces []string) time.Duration {
	if e.manager.Running() == 0 {
		return 0
	}
	return e.activity.idle(namespaces)
}

// conflicts says whether the manager, which was just started and has sent so much, cannot run beside those of the other
// processes: it ended, most likely over a port that both want, or it asks for the lease that another one holds.
func (e *testEnv) conflicts(sent []apiproxy.Request) bool {
	return e.manager.gone() != nil || slices.ContainsFunc(sent, func(r apiproxy.Request) bool {
		return r.Group == "coordination.k8s.io" && r.Resource == "leases"
	})
}

// close ends the manager and the proxy, and adds what the manager sent to the trace.
func (e *testEnv) close(ctx context.Context) error {
	defer func() { e.trace.Add(e.proxy.Since(0), e.proxy.Tallies()) }()
	e.forget()
	var stopped error
	if e.manager != nil {
		stopped = e.manager.Stop(ctx)
	}
	if e.registry != nil {
		stopped = errors.Join(stopped, e.registry.Close())
	}
	return errors.Join(stopped, e.proxy.Stop())
}

// Manager is the learner's manager, which the running check has for itself. It fails the check when there is none.
func Manager() *ManagerProcess {
	ginkgo.GinkgoHelper()
	if current.env == nil {
		require(errors.New("this run has no manager"))
	}
	return current.env.manager
}

// Registry is the one that the learner's manager is told of from lab 10 on, which the running check has for itself. It fails
// the check when there is none.
func Registry() *registry.Registry {
	ginkgo.GinkgoHelper()
	if current.env == nil || current.env.registry == nil {
		require(errors.New("this run has no registry"))
	}
	return current.env.registry
}

// Proxy is the proxy that the learner's manager goes through, which the running check has for itself.
func Proxy() (*apiproxy.Proxy, error) {
	if current.env == nil {
		return nil, errors.New("this run has no manager")
	}
	return current.env.proxy, nil
}

// Note adds to the trace of the running check what happened.
func Note(actor, text string) {
	if current.env != nil {
		current.env.note(actor, text)
	}
}

// giveUp has the whole run end, so that its checks are judged by one process.
func giveUp() error {
	if err := tell(suite.Result{State: suite.Restart}); err != nil {
		return err
	}
	ginkgo.AbortSuite("the manager cannot run several times on one machine")
	return nil
}

// Restart stops the manager and starts it with the given operand image.
func (m *ManagerProcess) Restart(ctx context.Context, image string) error {
	return m.restart(ctx, image, func() error { return nil })
}

// WhileStopped does something while no manager runs, and starts it again.
func (m *ManagerProcess) WhileStopped(ctx context.Context, act func() error) error {
	return m.restart(ctx, current.config.MemcachedImage, act)
}

// restart returns when the manager knows what there is: before that, that it does nothing shows nothing.
func (m *ManagerProcess) restart(ctx context.Context, image string, meanwhile func() error) error {
	if err := m.Stop(ctx); err != nil {
		return err
	}
	acted := meanwhile()
	if err := m.Start(image); err != nil {
		return err
	}
	current.env.awaitCaches(ctx)
	return acted
}
